r"""Past studies that disagree fade one by one, against the rule that judged all at once.

    PYTHONPATH=.:benchmarks:lab python lab/memory_fading.py order
    PYTHONPATH=.:benchmarks:lab nice python lab/memory_fading.py run \
        validation 25 65 25 mixed,related,misleading runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_fading.py report runs.jsonl

A mixed memory has three related studies of TPE and three misleading ones of random configurations,
a related one three of TPE and three random ones of related tasks, a misleading one five misleading
ones; 30 trials each. A run goes on where it was interrupted.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import optuna
from memory_harm import record, reference
from memory_lives import Row, read, scenario_of, space_of

from dre_plugins import DRESampler, Memory, Prior
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import SearchSpace
from dre_plugins.transfer.found import FadingPrior, concordance, expected_by
from dre_plugins.transfer.metadata import Task

NAMES = ("rbv2_rpart", "rbv2_xgboost")
MISLEADING = ("mirrored", "another")
KINDS = ("mixed", "related", "misleading")
RULES = ("none", "together", "one by one")
N_RELATED, N_MISLEADING, N_PAST_TRIALS = 3, 5, 30
AT = (1, 5, 10, 25)

# Configurations and values of a past study.
Past = tuple[Sequence[Row], np.ndarray]


# ---- past studies


@cache
def related(name: str, task: int) -> Past:
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=task % 1000)
    )
    study.optimize(lambda t: scenario_of(name).objective(t, task), n_trials=N_PAST_TRIALS)
    return [trial.params for trial in study.trials], np.array([t.value for t in study.trials])


def random_study(name: str, task: int, kind: str, rng: np.random.Generator, seed: int) -> Past:
    """Return random configurations, with values mirrored, of another function, or as they are."""
    scenario = scenario_of(name)
    drawn = scenario.random_configurations(N_PAST_TRIALS, rng)
    if kind == "another":
        units = np.nan_to_num(space_of(scenario.parameters).to_units(drawn), nan=0.5)
        best = np.random.default_rng([9, seed]).random(units.shape[1])
        return drawn, -((units - best) ** 2).sum(1)
    values = scenario.evaluate_many(task, drawn)[scenario.metric]
    return drawn, -values if kind == "mirrored" else values


def past(name: str, kind: str, misleading: str, seed: int) -> list[Past]:
    """Return three related studies of TPE and three of another kind, or five misleading ones."""
    rng = np.random.default_rng([22, seed])
    train = scenario_of(name).splits["train"]
    tasks = [int(task) for task in rng.choice(train, 2 * N_RELATED, replace=False)]
    if kind == "misleading":
        return [random_study(name, task, misleading, rng, seed) for task in tasks[:N_MISLEADING]]
    others = "related" if kind == "related" else misleading
    return [
        *(related(name, task) for task in tasks[:N_RELATED]),
        *(random_study(name, task, others, rng, seed) for task in tasks[N_RELATED:]),
    ]


# ---- the rule before


def all_or_none(
    found: FadingPrior,
    space: SearchSpace,
    history: Sequence[Trial],
    numbers: range,
    stats: Counter[str],
) -> tuple[Prior | None, int]:
    """Return the prior of all past studies as long as the trials do not contradict it."""
    n_turns = sum(number % 2 == 0 for number in numbers)
    if n_turns and concordance(found.whole.scores, space, history)[0] >= 0.0:
        return found.whole, n_turns
    return None, 0


# ---- runs


def tuned(rule: str, name: str, task: int, memory: Memory, seed: int, n_trials: int) -> Row:
    """Tune with a copy of a memory, in which the studies of the other rules are not."""
    copy = Memory(memory.path.with_name("copy"))
    shutil.copytree(memory.path, copy.path)
    one_by_one = FadingPrior.for_turns
    if rule == "together":
        FadingPrior.for_turns = all_or_none  # type: ignore[method-assign]
    start = time.process_time()
    try:
        sampler = DRESampler(seed=seed, prior="universal", memory=rule != "none" and copy)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(lambda t: scenario_of(name).objective(t, task), n_trials=n_trials)
    finally:
        FadingPrior.for_turns = one_by_one  # type: ignore[method-assign]
        if copy.priors.exists():  # each is trained once
            shutil.copytree(copy.priors, memory.priors, dirs_exist_ok=True)
        shutil.rmtree(copy.path)
    assert not sampler.stats["memory_errors"]
    return {
        "values": [trial.value for trial in study.trials],
        "contradicted": sampler.stats["memory_contradicted"],
        "named": [sampler.explain(study, trial).past_studies for trial in study.trials],
        "cpu": time.process_time() - start,
    }


def run(split: str, seeds: range, n_trials: int, kinds: Sequence[str], path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for seed in seeds:
        for kind in kinds:
            for place, name in enumerate(NAMES):
                misleading = MISLEADING[(seed + place) % len(MISLEADING)]
                pool = scenario_of(name).splits[split]
                task = int(pool[np.random.default_rng([23, seed]).integers(len(pool))])
                with tempfile.TemporaryDirectory() as folder:
                    memory = Memory(Path(folder) / "memory")
                    for number, (drawn, values) in enumerate(past(name, kind, misleading, seed)):
                        space = space_of(scenario_of(name).parameters)
                        record(memory, f"past{number}", space, drawn, values.tolist())
                    for rule in RULES if kind == "misleading" else RULES[1:]:
                        key = f"{split} {name} {seed} {kind} {rule}"
                        if key in done:
                            continue
                        row = {"key": key, "name": name, "task": task, "seed": seed}
                        row |= {"memory": kind, "misleading": misleading, "rule": rule}
                        row |= tuned(rule, name, task, memory, seed, n_trials)
                        with path.open("a") as file:
                            file.write(json.dumps(row) + "\n")


# ---- reports


def order() -> None:
    """Print how well a past task's own order of n trials tells related from misleading ones."""
    for name in NAMES:
        found: dict[tuple[int, str], list[float]] = {}
        for seed in range(60):
            for kind in ("related", *MISLEADING):
                for n, value in orders(name, seed, kind):
                    found.setdefault((n, kind), []).append(value)
        for n in (2, 4, 8, 16):
            kept = np.array(found[n, "related"])
            for kind in MISLEADING:
                others = np.array(found[n, kind])
                area = (kept[:, None] > others[None, :]).mean()
                shares = (kept < 0).mean(), (others < 0).mean()
                print(name, n, kind, f"area {area:.2f}; below 0:", np.round(shares, 2))


def orders(name: str, seed: int, kind: str) -> list[tuple[int, float]]:
    scenario, rng = scenario_of(name), np.random.default_rng([21, seed])
    space = space_of(scenario.parameters)
    tasks = [
        task_of(space, random_study(name, int(task), kind, rng, seed))
        for task in rng.choice(scenario.splits["train"], N_RELATED, replace=False)
    ]
    present = int(rng.choice(scenario.splits["validation"]))
    drawn = scenario.random_configurations(16, rng)
    trials = trials_of((drawn, scenario.evaluate_many(present, drawn)[scenario.metric]))
    return [
        (n, concordance(partial(expected_by, task), space, trials[:n])[0])
        for n in (2, 4, 8, 16)
        for task in tasks
    ]


def trials_of(study: Past) -> list[Trial]:
    return [
        Trial(drawn, TrialState.COMPLETE, float(value))
        for drawn, value in zip(*study, strict=True)
    ]


def task_of(space: SearchSpace, study: Past) -> Task:
    return Task.from_trials("past", space, trials_of(study))


def report(rows: Sequence[Row]) -> None:
    studies: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in rows:
        key = row["memory"], row["name"], row["seed"]
        studies.setdefault(key, {})[row["rule"]] = row
    for kind in KINDS:
        found = [pair for key, pair in studies.items() if key[0] == kind]
        for before, after in (
            ("together", "one by one"),
            ("none", "together"),
            ("none", "one by one"),
        ):
            for what in ("all", *MISLEADING, *NAMES):
                chosen = [
                    pair
                    for pair in found
                    if {before, after} <= pair.keys()
                    and what in ("all", pair[after]["misleading"], pair[after]["name"])
                ]
                if chosen:
                    show(f"{kind} {what}: {after} to {before}", chosen, before, after)


def show(title: str, chosen: Sequence[Mapping[str, Row]], before: str, after: str) -> None:
    shortest = min(len(row["values"]) for pair in chosen for row in pair.values())
    at = [trial for trial in AT if trial <= shortest]
    regrets = np.array([regrets_of(pair, (before, after), at) for pair in chosen])
    first, second = regrets[:, 0], regrets[:, 1]
    drawn = np.random.default_rng(0).integers(len(chosen), size=(2000, len(chosen)))
    error = (second[drawn].mean(1) / first[drawn].mean(1)).std(0)
    print(f"{title}, {len(chosen)} pairs @{at}")
    print("   ", first.mean(0).round(3), second.mean(0).round(3), end=" ")
    print("ratio", (second.mean(0) / first.mean(0)).round(2), "±", error.round(2), end=" ")
    print("better", (second < first).sum(0), "worse", (second > first).sum(0))


def regrets_of(
    pair: Mapping[str, Row], rules: Sequence[str], at: Sequence[int]
) -> list[np.ndarray]:
    first = pair[rules[0]]
    top, median = reference(first["name"], first["task"])
    top = max(top, *(max(row["values"]) for row in pair.values()))
    places = np.array(at) - 1
    return [
        (top - np.maximum.accumulate(pair[rule]["values"])[places]) / (top - median)
        for rule in rules
    ]


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    what, *arguments = sys.argv[1:]
    if what == "order":
        order()
    elif what == "run":
        split, first, last, n_trials, kinds, path = arguments
        seeds = range(int(first), int(last))
        run(split, seeds, int(n_trials), kinds.split(","), Path(path))
    else:
        report(read(Path(arguments[0])))


if __name__ == "__main__":
    main()
