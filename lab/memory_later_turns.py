"""Until which trial a memory should be used, and whether its tasks should fade one by one.

    PYTHONPATH=.:benchmarks:lab nice python lab/memory_later_turns.py run 300 376 25 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_later_turns.py report runs.jsonl

Rules: no memory; its turns are the even numbers ("all"), those below 10 or below 6, or all as long
as its predictions have a concordance of .25 from trial 10 on ("strict"); or past tasks fade one by
one, of which those are kept that do not contradict the first 4, 8, 16, … trials, half of them at
least if all together are contradicted. Past studies: five misleading ones of random configurations
(`memory_fading.py`), or three of TPE and three random ones of related tasks, 30 trials each. The
numbers are the first and last seed and the length of a study. A run goes on where it stopped.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import memory_fading as fading
import numpy as np
import optuna
from memory_harm import record, reference
from memory_lives import Row, read, scenario_of, space_of

from dre_plugins import DRESampler, Memory
from dre_plugins.adapters.optuna import prior as adapter
from dre_plugins.memory import study as study_memory
from dre_plugins.recommend.lists import final_value

KINDS = ("misleading", "related", "mixed")
LIMITS = {"all": 10**6, "below 10": 10, "below 6": 6, "strict": 10**6, "one by one": 10**6}
RULES = ("none", *LIMITS)
AT = (1, 5, 10, 12, 15, 20, 25)


def past_studies(name: str, kind: str, misleading: str, seed: int) -> list[fading.Past]:
    rng = np.random.default_rng([22, seed])
    train = scenario_of(name).splits["train"]
    tasks = [int(task) for task in rng.choice(train, 6, replace=False)]
    if kind == "misleading":
        return [fading.random_study(name, task, misleading, rng, seed) for task in tasks[:5]]
    others = "related" if kind == "related" else misleading
    return [
        *(fading.related(name, task) for task in tasks[:3]),
        *(fading.random_study(name, task, others, rng, seed) for task in tasks[3:]),
    ]


class OneByOne(fading.Fading):
    """Keep the tasks that do not contradict the trials."""

    def keep(self, history: Any) -> tuple[int, ...]:
        ended = [trial for trial in history if final_value(trial) is not None]
        if len(ended) < 4:
            return tuple(range(len(self._past)))
        return super().keep(ended[: 2 ** (len(ended).bit_length() - 1)])

    def recommender(self, present: Any) -> Any:
        def found(study: Any, new: Any, space: Any, history: Any, number: int, stats: Any) -> Any:
            if number % 2 == 0 and space.n_parameters:
                kept = self.keep(history)
                if len(kept) < len(self._past):
                    whole = study_memory.concordance(study._found, space, history)
                    if not kept or (whole < 0 and 2 * len(kept) < len(self._past)):
                        return new(prior="universal"), ""
                    study = adapter.StudyPrior(self.prior(kept))
            return present(study, new, space, history, number, stats)

        return found


def tuned(rule: str, name: str, task: int, past: list, folder: Path, seed: int, n: int) -> Row:
    scenario, present = scenario_of(name), adapter.StudyPrior.recommender
    space = space_of(scenario.parameters)
    memory = Memory(folder / rule)
    for place, (configurations, values) in enumerate(past):
        record(memory, f"past{place}", space, configurations, values.tolist())
    concordance = study_memory.concordance

    def strict(prior: Any, space: Any, history: Any) -> float:
        return concordance(prior, space, history) - (0.25 if len(history) >= 10 else 0.0)

    study_memory.N_PRIOR_TRIALS = LIMITS.get(rule, 0)
    study_memory.concordance = strict if rule == "strict" else concordance
    if rule == "one by one":
        adapter.StudyPrior.recommender = OneByOne(space, past).recommender(present)
    try:
        sampler = DRESampler(seed=seed, prior="universal", memory=rule != "none" and memory)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(lambda trial: scenario.objective(trial, task), n_trials=n)
    finally:
        adapter.StudyPrior.recommender = present
        study_memory.concordance = concordance
    assert not sampler.stats["memory_errors"] and not sampler.stats["fallbacks"]
    shutil.rmtree(memory.path, ignore_errors=True)
    contradicted = sampler.stats["memory_contradicted"]
    return {"values": [t.value for t in study.trials], "contradicted": contradicted}


def run(first: int, last: int, n_trials: int, path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for seed in range(first, last):
        for kind in KINDS:
            for place, name in enumerate(fading.NAMES):
                misleading = fading.MISLEADING[(seed + place) % 2]
                pool = scenario_of(name).splits["validation"]
                task = int(pool[np.random.default_rng([23, seed]).integers(len(pool))])
                keys = {rule: f"{name} {seed} {kind} {rule}" for rule in RULES}
                past = (
                    [] if {*keys.values()} <= done else past_studies(name, kind, misleading, seed)
                )
                for rule in [rule for rule in RULES if keys[rule] not in done]:
                    row = {"key": keys[rule], "name": name, "task": task, "seed": seed}
                    row |= {"memory": kind, "kind": misleading, "rule": rule}
                    with tempfile.TemporaryDirectory() as folder:
                        row |= tuned(rule, name, task, past, Path(folder), seed, n_trials)
                    with path.open("a") as file:
                        file.write(json.dumps(row) + "\n")


def report(rows: list[Row]) -> None:
    pairs: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in rows:
        pairs.setdefault((row["memory"], row["name"], row["seed"]), {})[row["rule"]] = row
    for kind in KINDS:
        whole = [pair for key, pair in pairs.items() if key[0] == kind and {*RULES} <= {*pair}]
        if not whole:
            continue
        regrets = np.array([regrets_of(pair) for pair in whole])  # [pair, rule, T]
        drawn = np.random.default_rng(0).integers(len(whole), size=(2000, len(whole)))
        print(f"{kind}: {len(whole)} pairs @{AT}")
        for place, rule in enumerate(RULES):
            mean, none = regrets[:, place], regrets[:, 0]
            error = (mean[drawn].mean(1) / none[drawn].mean(1)).std(0)
            ratio = mean.mean(0) / none.mean(0)
            print(f"    {rule:10}", mean.mean(0).round(3), ratio.round(2), "±", error.round(2))


def regrets_of(pair: dict[str, Row]) -> list[list[float]]:
    top, median = reference(pair["none"]["name"], pair["none"]["task"])
    top = max(top, *(max(row["values"]) for row in pair.values()))
    best = {rule: np.maximum.accumulate(pair[rule]["values"]) for rule in RULES}
    return [
        [(top - best[rule][min(n, len(best[rule])) - 1]) / (top - median) for n in AT]
        for rule in RULES
    ]


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    what, *arguments = sys.argv[1:]
    if what == "run":
        first, last, n_trials = map(int, arguments[:3])
        run(first, last, n_trials, Path(arguments[3]))
    else:
        report(read(Path(arguments[0])))


if __name__ == "__main__":
    main()
