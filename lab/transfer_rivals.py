"""Transfer from five past studies: ours, Ax's `BOTL`, and what Syne Tune has, in the same runs.

    PYTHONPATH=.:benchmarks:lab nice -n 15 python lab/transfer_rivals.py run test 20 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/transfer_rivals.py report runs.jsonl

Past studies are of TPE, 40 trials on training tasks of the same scenario. In the second kind of
pair each study, past or present, has a search space of its own (`memory_lives.variant_of`). The
environments of `benchmarks/README.md` are in /work/rivals. A run goes on where it was interrupted:
each line of the file is a study. Regret: 0 is the best of 2000 random configurations or of any
study of the pair, 1 is their median.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from memory_harm import record
from memory_lives import Row, Variant, middle, reference, scenario_of, space_of, variant_of
from paired_studies import ratio, regrets

from dre_bench.learner_evaluations.records import append, read
from dre_bench.problems.foreign import FOLDER, ForeignSampler, python_of
from dre_bench.samplers import make_sampler
from dre_bench.tasks import Parameter
from dre_plugins import DRESampler, Memory

NAMES = ("rbv2_rpart", "rbv2_xgboost")
LIVES = ("same", "varied")
ENVIRONMENTS = Path("/work/rivals")
N_PAST, N_TRIALS = 5, 40
N_PRESENT = 25
N_OF_BOTL = 10  # a suggestion takes it 2 to 3 s
AT = (1, 5, 10, 25)
OURS = ("memory", "none")
OPTUNAS = ("tpe", "gp")
# Name -> environment, searcher and its arguments. Those of Syne Tune need equal spaces.
RIVALS: Mapping[str, tuple[str, str, Row]] = {
    "botl": ("ax", "with_botl.py", {}),
    "quantile": ("cqr", "with_cqr.py", {"method": "quantile"}),
    "box": ("cqr", "with_cqr.py", {"method": "box"}),
}
METHODS = (*OURS, *OPTUNAS, *RIVALS)


def name_in(variant: Variant, parameter: Parameter) -> str:
    return variant.names.get(parameter.name, parameter.name)


def shown(variant: Variant) -> list[Parameter]:
    """Return the parameters by the names that a study of a variant gives them."""
    return [
        replace(
            parameter,
            name=name_in(variant, parameter),
            parent=parameter.parent and variant.names.get(parameter.parent, parameter.parent),
        )
        for parameter in variant.parameters
    ]


# ---- past studies


@cache
def past_study(life: str, name: str, task: int) -> Row:
    """Return configurations and values of a study of TPE, inactive parameters left out."""
    variant = variant_of(life, name, 7000 + task)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=7000 + task)
    )
    study.optimize(lambda trial: variant.objective(trial, task), n_trials=N_TRIALS)
    return {
        "variant": variant,
        "params": [trial.params for trial in study.trials],
        "values": [trial.value for trial in study.trials],
    }


def past_studies(life: str, name: str, seed: int) -> list[Row]:
    train = scenario_of(name).splits["train"]
    drawn = np.random.default_rng([13, seed]).choice(train, N_PAST, replace=False)
    return [past_study(life, name, int(task)) for task in drawn]


# ---- the present study


def tuned(method: str, life: str, name: str, task: int, seed: int) -> Row:
    variant = variant_of(life, name, seed)
    past = past_studies(life, name, seed)
    start = time.perf_counter()
    if method in RIVALS:
        values, versions = rival(method, variant, task, seed, past)
        return {"values": values, "versions": versions, "seconds": time.perf_counter() - start}
    with tempfile.TemporaryDirectory() as folder:
        sampler: Any
        if method == "memory":
            sampler = DRESampler(seed=seed, memory=remembered(Path(folder), past))
        elif method == "none":
            sampler = DRESampler(seed=seed)
        else:
            sampler = make_sampler(method, seed, name)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(lambda trial: variant.objective(trial, task), n_trials=N_PRESENT)
    found: Row = {"values": [trial.value for trial in study.trials]}
    if method == "memory":
        assert not sampler.stats["memory_errors"]
        found |= {"past": sampler.stats["past_studies"]}
    return {**found, "seconds": time.perf_counter() - start}


def remembered(folder: Path, past: Sequence[Row]) -> Memory:
    memory = Memory(folder)
    for number, study in enumerate(past):
        space = space_of(shown(study["variant"]))
        record(memory, f"past{number}", space, study["params"], study["values"])
    return memory


def rival(
    method: str, variant: Variant, task: int, seed: int, past: Sequence[Row]
) -> tuple[list[float], Mapping[str, str]]:
    """Return the values of a rival's study, and the versions of its libraries.

    It is told of no conditions: an inactive parameter of a past study has the middle of its range.
    """
    environment, searcher, arguments = RIVALS[method]
    python = python_of(environment, ENVIRONMENTS)
    assert python is not None
    command = [python, "-E", str(FOLDER / "serve.py"), str(FOLDER / searcher)]
    transfer = {**arguments, "past": [told(variant, study) for study in past]}
    parameters = shown(variant)
    own_names = {name_in(variant, parameter): parameter for parameter in variant.parameters}
    values: list[float] = []
    with ForeignSampler(
        command, parameters, seed=seed, trials=N_PRESENT, transfer=transfer
    ) as sampler:
        for _ in range(N_OF_BOTL if method == "botl" else N_PRESENT):
            (asked,) = sampler.ask(1)
            found = {own_names[name].name: value for name, value in asked.items()}
            values.append(variant.scenario.value(task, variant.whole(found)))
            sampler.tell(values[-1:])
        return values, sampler.versions


def told(present: Variant, study: Row) -> Row:
    """Return a past study as rivals are told of it."""
    variant: Variant = study["variant"]
    past = shown(variant)
    names = {p.name: name_in(variant, p) for p in variant.parameters}
    given = {
        name_in(present, p): names[p.name]
        for p in present.parameters
        if p.name in names and names[p.name] != name_in(present, p)
    }
    filled = {p.name: middle(p) for p in past}
    return {
        "parameters": [asdict(parameter) for parameter in past],
        "configurations": [{**filled, **found} for found in study["params"]],
        "values": study["values"],
        "names": given,
    }


def pairs(split: str, n_pairs: int) -> list[tuple[str, str, int, int]]:
    """Return kind, scenario, task and seed of each pair."""
    found = []
    for seed in range(n_pairs):
        for life in LIVES:
            for name in NAMES:
                pool = np.random.default_rng(14).permutation(scenario_of(name).splits[split])
                found.append((life, name, int(pool[seed % len(pool)]), 9000 + seed))
    return found


def run(split: str, n_pairs: int, path: Path, methods: Sequence[str]) -> None:
    done = {row["key"] for row in read(path)}
    for life, name, task, seed in pairs(split, n_pairs):
        for method in methods:
            key = f"{split} {life} {name} {task} {seed} {method}"
            if key in done or (method in ("quantile", "box") and life != "same"):
                continue
            top, median = reference(life, name, task, seed)
            row = {"key": key, "split": split, "life": life, "name": name, "task": task}
            row |= {"seed": seed, "method": method, "top": top, "median": median}
            try:
                row |= tuned(method, life, name, task, seed)
            except RuntimeError as error:
                row |= {"error": str(error)}
            append(path, row)


# ---- report


def report(rows: Sequence[Row]) -> None:
    whole: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in rows:
        if "error" in row:
            print(row["key"], row["error"][-300:])
            continue
        pair = whole.setdefault((row["life"], row["name"], row["seed"]), {})
        pair[row["method"]] = row
    for life in LIVES:
        chosen = [pair for key, pair in whole.items() if key[0] == life and "memory" in pair]
        print(f"{life}: {len(chosen)} pairs; regret @{AT}; ratio of ours with memory to it")
        for method in METHODS:
            compare(method, [pair for pair in chosen if method in pair])


def compare(method: str, pairs: Sequence[Mapping[str, Row]]) -> None:
    if not pairs:
        return
    n_at = min(sum(at <= len(pair[method]["values"]) for at in AT) for pair in pairs)
    ours, theirs = [], []
    for pair in pairs:
        top = max(pair[method]["top"], *(max(row["values"]) for row in pair.values()))
        for found, row in ((ours, pair["memory"]), (theirs, pair[method])):
            found.append(regrets(row["values"], top, pair[method]["median"], AT[:n_at]))
    means = np.mean(theirs, axis=0).round(3)
    print(f"    {method:9} of {len(pairs)}", means, ratio(ours, theirs))


def main() -> None:
    what, *arguments = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if what == "run":
        split, n_pairs, path, *methods = arguments
        run(split, int(n_pairs), Path(path), methods or METHODS)
    else:
        report(read(Path(arguments[0])))


if __name__ == "__main__":
    main()
