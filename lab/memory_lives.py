"""What a memory is worth over a life of twenty tuning tasks, one after another.

    PYTHONPATH=.:benchmarks nice -n 15 python lab/memory_lives.py run validation 1 lives.jsonl
    PYTHONPATH=.:benchmarks nice -n 15 python lab/memory_lives.py run test 5 lives.jsonl
    PYTHONPATH=.:benchmarks python lab/memory_lives.py report lives.jsonl

A life mixes six tasks of each YAHPO scenario with four functions and two tasks of each of two
learners. In the second kind of life every study has a search space of its own: other ranges, a
parameter more or less, other names of the same. A run goes on where it was interrupted: each line
of the file is a study, and the memories are in folders beside it. Regret: 0 is the best of random
configurations or of any study of the same space, 1 is their median.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from paired_studies import ratio, regrets

from dre_bench.learner_evaluations.records import append, read
from dre_bench.runs import Sources
from dre_bench.samplers import make_sampler
from dre_bench.scenarios import scenario_of as find_scenario
from dre_bench.tasks import Parameter, Scenario, active_part
from dre_plugins import DRESampler, Memory
from dre_plugins.space import Categorical, Float, Integer, SearchSpace

SOURCES = Sources(data=Path("/work/shared/data/yahpo"))
N_TRIALS = 40
AT = (1, 5, 10, 25, 40)
# Name of a scenario, and how many tasks of a life are of it.
TASKS = {
    "rbv2_rpart": 6,
    "rbv2_xgboost": 6,
    "branin": 1,
    "hartmann6": 1,
    "ackley5": 1,
    "mixed": 1,
    "svm-digits": 2,
    "boosting-diabetes": 2,
}
PASSES = (("memory", "none"), ("tpe", "gp"))  # what is compared first, in all lives
METHODS = tuple(method for methods in PASSES for method in methods)
# Names of the same parameter, as `transfer.spaces.aliases` knows them.
ALIASES: Mapping[str, Mapping[str, str]] = {
    "rbv2_xgboost": {
        "eta": "learning_rate",
        "nrounds": "n_estimators",
        "lambda": "reg_lambda",
        "alpha": "reg_alpha",
        "gamma": "min_split_loss",
        "subsample": "bagging_fraction",
    },
    "rbv2_rpart": {
        "cp": "ccp_alpha",
        "maxdepth": "max_depth",
        "minbucket": "min_samples_leaf",
        "minsplit": "min_samples_split",
    },
    "boosting-diabetes": {
        "n_estimators": "nrounds",
        "learning_rate": "shrinkage",
        "min_samples_leaf": "min_child_samples",
    },
    "svm-digits": {"C": "cost"},
}
EXTRA = Parameter("chunk", "float", 0.0, 1.0)  # a parameter that changes nothing

Row = dict[str, Any]


@cache
def scenario_of(name: str) -> Scenario:
    return find_scenario(SOURCES, name)


# ---- search spaces


@dataclass(frozen=True)
class Variant:
    """A scenario as one study sees it.

    Args:
        scenario: The scenario.
        parameters: What is tuned, by the scenario's names.
        names: Name in the study, by the scenario's name.
        fixed: Values of parameters that are not tuned.
    """

    scenario: Scenario
    parameters: tuple[Parameter, ...]
    names: Mapping[str, str]
    fixed: Mapping[str, Any]

    def objective(self, trial: optuna.Trial, task: int) -> float:
        found: Row = {}
        for parameter in self.parameters:
            if parameter.is_active({**self.fixed, **found}):
                name = self.names.get(parameter.name, parameter.name)
                found[parameter.name] = replace(parameter, name=name).suggest(trial)
        return self.scenario.value(task, self.whole(found))

    def drawn(self, task: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return the values of random configurations of this space."""
        rows = []
        for _ in range(n):
            found: Row = {}
            for parameter in self.parameters:
                if parameter.is_active({**self.fixed, **found}):
                    found[parameter.name] = parameter.draw(rng)
            rows.append(self.whole(found))
        return self.scenario.evaluate_many(task, rows)[self.scenario.metric]

    def whole(self, found: Row) -> Row:
        return active_part(self.scenario.parameters, {**self.fixed, **found})


def variant_of(life: str, name: str, seed: int) -> Variant:
    """Return a scenario with its own space, or for a life of kind "varied" with another one."""
    scenario = scenario_of(name)
    if life == "same":
        return Variant(scenario, scenario.parameters, {}, {})
    rng = np.random.default_rng([12, seed])
    parents = {parameter.parent for parameter in scenario.parameters}
    parameters = [shortened(parameter, rng) for parameter in scenario.parameters]
    fixed: Row = {}
    optional = [parameter for parameter in parameters if parameter.name not in parents]
    if len(parameters) > 2 and rng.random() < 2 / 3:
        left_out = optional[int(rng.integers(len(optional)))]
        parameters.remove(left_out)
        fixed[left_out.name] = middle(left_out)
    if rng.random() < 1 / 3:
        parameters.append(EXTRA)
    aliases = ALIASES.get(name, {})
    return Variant(
        scenario,
        tuple(parameters),
        {old: new for old, new in aliases.items() if rng.random() < 0.5},
        fixed,
    )


def shortened(parameter: Parameter, rng: np.random.Generator) -> Parameter:
    """Return a parameter with up to three tenths of its range cut off at one end, or as it is."""
    cut, is_low, is_kept = rng.uniform(0, 0.3), rng.random() < 0.5, rng.random() < 0.5
    if parameter.kind == "categorical" or is_kept:
        return parameter
    end = at(parameter, cut if is_low else 1.0 - cut)
    changed = replace(parameter, **{"low" if is_low else "high": end})
    return changed if changed.low < changed.high else parameter


def middle(parameter: Parameter) -> Any:
    return parameter.choices[0] if parameter.kind == "categorical" else at(parameter, 0.5)


def at(parameter: Parameter, share: float) -> float | int:
    low, high = parameter.low, parameter.high
    if parameter.log:
        value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    else:
        value = low + share * (high - low)
    value = min(max(value, low), high)
    return round(value) if parameter.kind == "int" else value


def space_of(parameters: Iterable[Parameter]) -> SearchSpace:
    """Return a search space in which conditional parameters are absent where inactive."""
    parameters = [*parameters]
    kinds = {"float": Float, "int": Integer}
    domains = {
        p.name: Categorical(p.choices)
        if p.kind == "categorical"
        else kinds[p.kind](
            *((int(p.low), int(p.high)) if p.kind == "int" else (p.low, p.high)),
            "log" if p.log else "linear",
        )
        for p in parameters
    }
    return SearchSpace(domains, (), [p.name for p in parameters if p.parent])


# ---- runs


def tasks_of(split: str, order: int) -> list[tuple[str, int]]:
    """Return the tasks of a life in random order."""
    rng = np.random.default_rng([7, order, split == "test"])
    found = []
    for name, n_tasks in TASKS.items():
        splits: Mapping[str, list[int]] = scenario_of(name).splits
        pool = splits["test"]
        if split != "test":
            pool = sorted([*splits["train"], *splits["validation"]])
        found += [(name, int(task)) for task in rng.choice(pool, n_tasks, replace=False)]
    return [found[place] for place in rng.permutation(len(found))]


def run(split: str, n_orders: int, path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for methods in PASSES:
        for order in range(n_orders):
            for life in ("same", "varied"):
                for row in studies(split, order, life, methods, path.with_suffix(""), done):
                    append(path, row)


def studies(
    split: str, order: int, life: str, methods: Sequence[str], folder: Path, done: set[str]
) -> Iterator[Row]:
    """Yield what each method reaches on the tasks of one life, and what random search does."""
    tasks = tasks_of(split, order)
    for method in methods:
        memory = Memory(folder / f"{split}-{life}-{order}")
        for place, (name, task) in enumerate(tasks):
            key = f"{split} {life} {order} {place} {method}"
            if key in done:
                continue
            variant = variant_of(life, name, 100 * order + place)
            row = {"key": key, "split": split, "life": life, "order": order, "place": place}
            row |= {"method": method, "scenario": name, "task": task}
            row |= {"related": sum(earlier == name for earlier, _ in tasks[:place])}
            if method == "memory":
                unfinished = [e for e in memory.index().entries if e.header.name == key]
                memory.forget(unfinished)  # of a run that was interrupted
                top, median = reference(life, name, task, 100 * order + place)
                row |= {"top": top, "median": median}
            yield {**row, **tuned(variant, task, 100 * order + place, method, memory, key)}


def reference(life: str, name: str, task: int, seed: int) -> tuple[float, float]:
    """Return the best and the median value of random configurations."""
    return _reference(life, name, task, seed if life == "varied" else 0)


@cache
def _reference(life: str, name: str, task: int, seed: int) -> tuple[float, float]:
    is_slow = scenario_of(name).n_reference < 2000
    rng = np.random.default_rng(task)
    values = variant_of(life, name, seed).drawn(task, 100 if is_slow else 2000, rng)
    return float(values.max()), float(np.median(values))


def tuned(variant: Variant, task: int, seed: int, method: str, memory: Memory, name: str) -> Row:
    sampler: Any
    if method in ("memory", "none"):
        sampler = DRESampler(
            seed=seed, prior="universal", memory=memory if method == "memory" else False
        )
    else:
        sampler = make_sampler(method, seed, variant.scenario.name)
    study = optuna.create_study(direction="maximize", sampler=sampler, study_name=name)
    start = time.perf_counter()
    study.optimize(lambda trial: variant.objective(trial, task), n_trials=N_TRIALS)
    found = {
        "values": [trial.value for trial in study.trials],
        "seconds": time.perf_counter() - start,
    }
    if method == "memory":
        assert not sampler.stats["memory_errors"]
        explained = [sampler.explain(study, trial) for trial in study.trials]
        found |= {
            "past_studies": sampler.stats["past_studies"],
            "contradicted": sampler.stats["memory_contradicted"],
            "sources": [explanation.source for explanation in explained],
        }
    return found


# ---- report


def report(rows: Sequence[Row]) -> None:
    groups = sorted({(row["split"], row["life"]) for row in rows})
    for split, life in groups:
        show(split, life, [r for r in rows if (r["split"], r["life"]) == (split, life)])


def show(split: str, life: str, rows: Sequence[Row]) -> None:
    studies: dict[tuple[int, int], dict[str, Row]] = {}
    for row in rows:
        studies.setdefault((row["order"], row["place"]), {})[row["method"]] = row
    whole = {key: found for key, found in studies.items() if set(PASSES[0]) <= set(found)}
    print(f"\n## {split}, {life}: {len(whole)} studies; regret @{AT}")
    of_methods = {key: regrets_of(found) for key, found in whole.items()}
    for first in range(0, 20, 4):
        chosen = [key for key in whole if first <= key[1] < first + 4]
        line(f"studies {first + 1} to {first + 4}", chosen, of_methods)
    line("all", list(whole), of_methods)
    yahpo = [key for key in whole if whole[key]["memory"]["scenario"].startswith("rbv2")]
    for n_past in range(6):
        chosen = [key for key in yahpo if whole[key]["memory"]["related"] == n_past]
        line(f"YAHPO, {n_past} related before", chosen, of_methods)
    fifth = [key for key in yahpo if whole[key]["memory"]["related"] >= 4]
    line("from the fifth related study on", fifth, of_methods)
    for name in TASKS:
        chosen = [key for key in whole if whole[key]["memory"]["scenario"] == name]
        line(name, chosen, of_methods)


def regrets_of(found: Mapping[str, Row]) -> Mapping[str, np.ndarray]:
    """Return the regret of each method `[T]` after `AT` trials."""
    reference = found["memory"]
    top = max(reference["top"], *(max(row["values"]) for row in found.values()))
    return {
        method: regrets(row["values"], top, reference["median"], AT)
        for method, row in found.items()
    }


def line(
    what: str,
    keys: Sequence[tuple[int, int]],
    found: Mapping[tuple[int, int], Mapping[str, np.ndarray]],
) -> None:
    if not keys:
        return
    print(f"{what} ({len(keys)})")
    for method in METHODS:
        means = [found[key][method] for key in keys if method in found[key]]
        if means:
            print(f"    {method:8}", np.mean(means, axis=0).round(3), f"of {len(means)}")
    print("    ratio   ", ratio(*([found[key][method] for key in keys] for method in PASSES[0])))


def main() -> None:
    what, *arguments = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if what == "run":
        run(arguments[0], int(arguments[1]), Path(arguments[2]))
    else:
        report(read(Path(arguments[0])))


if __name__ == "__main__":
    main()
