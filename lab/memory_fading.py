"""Past tasks that disagree fade one by one: a prototype, against the rule that judges all at once.

    PYTHONPATH=.:benchmarks:lab python lab/memory_fading.py order
    PYTHONPATH=.:benchmarks:lab nice python lab/memory_fading.py run validation 1 21 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_fading.py report runs.jsonl

The memory is mixed: three related studies of TPE and three misleading ones of random
configurations, 30 trials each. Of each past task, its five nearest trials say what it expects of
the trials so far; it is kept as long as they do not contradict it (`ensemble.trust.agreement`).
A suggestion of the memory starts from a prior of the kept tasks, trained anew where they are
others, and is made without past studies if none is left. A run goes on where it was interrupted.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from memory_harm import record, reference
from memory_lives import Row, read, scenario_of, space_of
from sklearn.neighbors import KNeighborsRegressor

from dre_plugins import DRESampler, Memory, MetaDataset, Prior
from dre_plugins.adapters.optuna import prior as adapter
from dre_plugins.recommend.ensemble.expectation import agreement
from dre_plugins.recommend.lists import final_value
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import SearchSpace
from dre_plugins.transfer.metadata import Task

NAMES = ("rbv2_rpart", "rbv2_xgboost")
MISLEADING = ("mirrored", "another")
RULES = ("present", "fading")
N_RELATED, N_PAST_TRIALS, N_TRIALS = 3, 30, 25
N_NEIGHBOURS, N_REFERENCE = 5, 256
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
        units = units_of(space_of(scenario.parameters), drawn)
        best = np.random.default_rng([9, seed]).random(units.shape[1])
        return drawn, -((units - best) ** 2).sum(1)
    values = scenario.evaluate_many(task, drawn)[scenario.metric]
    return drawn, -values if kind == "mirrored" else values


def mixed(name: str, kind: str, seed: int) -> list[Past]:
    """Return related studies, then as many of a misleading kind."""
    rng = np.random.default_rng([22, seed])
    train = scenario_of(name).splits["train"]
    tasks = [int(task) for task in rng.choice(train, 2 * N_RELATED, replace=False)]
    return [
        *(related(name, task) for task in tasks[:N_RELATED]),
        *(random_study(name, task, kind, rng, seed) for task in tasks[N_RELATED:]),
    ]


def units_of(space: SearchSpace, configurations: Sequence[Row]) -> np.ndarray:
    """Return coordinates `[N, P]`, those of inactive parameters in the middle."""
    return np.nan_to_num(space.to_units(configurations), nan=0.5)


# ---- the prototype


def concordance(
    past_units: np.ndarray, past_values: np.ndarray, units: np.ndarray, values: np.ndarray
) -> float:
    """Return how well a past task orders some trials, from -1 to 1."""
    ranks = np.argsort(np.argsort(past_values)) / (len(past_values) - 1)
    model = KNeighborsRegressor(N_NEIGHBOURS, weights="distance").fit(past_units, ranks)
    drawn = np.random.default_rng(0).random((N_REFERENCE, units.shape[1]))
    expected = model.predict(units)
    shares = (model.predict(drawn)[None, :] > expected[:, None]).mean(1)
    return agreement(shares, values)[0]


class Fading:
    """Give the priors of those past studies that the trials do not contradict."""

    def __init__(self, space: SearchSpace, past: Sequence[Past]) -> None:
        self._space = space
        self._past = past
        self._units = [units_of(space, configurations) for configurations, _ in past]
        self._priors: dict[tuple[int, ...], Prior] = {}
        self.kept: list[tuple[int, ...]] = []

    def keep(self, history: Sequence[Trial]) -> tuple[int, ...]:
        """Return the places of the past studies that are kept."""
        places = tuple(range(len(self._past)))
        ended = [trial for trial in history if final_value(trial) is not None]
        if len(ended) >= 2:
            units = units_of(self._space, [trial.configuration for trial in ended])
            values = np.array([final_value(trial) for trial in ended])
            places = tuple(
                place
                for place in places
                if concordance(self._units[place], self._past[place][1], units, values) >= 0.0
            )
        self.kept.append(places)
        return places

    def prior(self, places: tuple[int, ...]) -> Prior:
        if places not in self._priors:
            tasks = (
                Task.from_trials(
                    f"past{place}",
                    self._space,
                    [
                        Trial(configuration, TrialState.COMPLETE, float(value))
                        for configuration, value in zip(*self._past[place], strict=True)
                    ],
                )
                for place in places
            )
            self._priors[places] = Prior.of_few(MetaDataset.of(tasks, source="lab"))
        return self._priors[places]

    def recommender(self, present: Callable[..., Any]) -> Callable[..., Any]:
        """Return `StudyPrior.recommender` with fading priors for one that judges all at once."""

        def found(
            study_prior: Any,
            new: Callable[..., Any],
            space: SearchSpace,
            history: Sequence[Trial],
            number: int,
            stats: Any,
        ) -> Any:
            if number % 2 == 0 and space.n_parameters:  # the memory's turns
                places = self.keep(history)
                if not places:
                    return new(prior="universal"), ""
                if len(places) < len(self._past):
                    prior = self.prior(places)
                    study_prior = adapter.StudyPrior(prior, prior)
            return present(study_prior, new, space, history, number, stats)

        return found


# ---- runs


def tuned(rule: str, name: str, task: int, kind: str, seed: int) -> Row:
    past = mixed(name, kind, seed)
    space = space_of(scenario_of(name).parameters)
    present, fading = adapter.StudyPrior.recommender, Fading(space, past)
    if rule == "fading":
        adapter.StudyPrior.recommender = fading.recommender(present)
    start = time.process_time()
    try:
        with tempfile.TemporaryDirectory() as folder:
            memory = Memory(Path(folder))
            for place, (configurations, values) in enumerate(past):
                record(memory, f"past{place}", space, configurations, values.tolist())
            sampler = DRESampler(seed=seed, memory=memory)
            study = optuna.create_study(direction="maximize", sampler=sampler)
            study.optimize(lambda t: scenario_of(name).objective(t, task), n_trials=N_TRIALS)
    finally:
        adapter.StudyPrior.recommender = present
    assert not sampler.stats["memory_errors"]
    return {
        "values": [trial.value for trial in study.trials],
        "contradicted": sampler.stats["memory_contradicted"],
        "kept": fading.kept,
        "cpu": time.process_time() - start,
    }


def run(split: str, first: int, last: int, path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for seed in range(first, last):
        for place, name in enumerate(NAMES):
            kind = MISLEADING[(seed + place) % 2]
            pool = scenario_of(name).splits[split]
            task = int(pool[np.random.default_rng([23, seed]).integers(len(pool))])
            for rule in RULES:
                key = f"{split} {name} {seed} {rule}"
                if key in done:
                    continue
                row = {"key": key, "name": name, "task": task, "seed": seed}
                row |= {"kind": kind, "rule": rule, **tuned(rule, name, task, kind, seed)}
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
        for n in (4, 6, 8, 12, 16):
            kept = np.array(found[n, "related"])
            for kind in MISLEADING:
                others = np.array(found[n, kind])
                area = (kept[:, None] > others[None, :]).mean()
                shares = (kept < 0).mean(), (others < 0).mean()
                print(name, n, kind, f"area {area:.2f}; below 0:", np.round(shares, 2))


def orders(name: str, seed: int, kind: str) -> list[tuple[int, float]]:
    scenario, rng = scenario_of(name), np.random.default_rng([21, seed])
    space = space_of(scenario.parameters)
    tasks = rng.choice(scenario.splits["train"], N_RELATED, replace=False)
    past = [random_study(name, int(task), kind, rng, seed) for task in tasks]
    present = int(rng.choice(scenario.splits["validation"]))
    drawn = scenario.random_configurations(16, rng)
    units = units_of(space, drawn)
    values = scenario.evaluate_many(present, drawn)[scenario.metric]
    return [
        (n, concordance(units_of(space, known), known_values, units[:n], values[:n]))
        for n in (4, 6, 8, 12, 16)
        for known, known_values in past
    ]


def report(rows: Sequence[Row]) -> None:
    pairs: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        pairs.setdefault((row["name"], row["seed"]), {})[row["rule"]] = row
    whole = [pair for pair in pairs.values() if len(pair) == len(RULES)]
    for what in ("all", *MISLEADING, *NAMES):
        chosen = [
            pair
            for pair in whole
            if what in ("all", pair["present"]["kind"], pair["present"]["name"])
        ]
        if not chosen:
            continue
        regrets = np.array([regrets_of(pair) for pair in chosen])  # [pair, rule, T]
        present, fading = regrets[:, 0], regrets[:, 1]
        drawn = np.random.default_rng(0).integers(len(chosen), size=(2000, len(chosen)))
        error = (fading[drawn].mean(1) / present[drawn].mean(1)).std(0)
        print(f"{what}: {len(chosen)} pairs @{AT}")
        print("    present", present.mean(0).round(3), "fading", fading.mean(0).round(3))
        print(
            "    ratio", (fading.mean(0) / present.mean(0)).round(2), "±", error.round(2), end=" "
        )
        print("better", (fading < present).sum(0), "worse", (fading > present).sum(0))


def regrets_of(pair: Mapping[str, Row]) -> list[np.ndarray]:
    top, median = reference(pair["present"]["name"], pair["present"]["task"])
    top = max(top, *(max(row["values"]) for row in pair.values()))
    places = np.array(AT) - 1
    return [
        (top - np.maximum.accumulate(pair[rule]["values"])[places]) / (top - median)
        for rule in RULES
    ]


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    what, *arguments = sys.argv[1:]
    if what == "order":
        order()
    elif what == "run":
        split, first, last, path = arguments
        run(split, int(first), int(last), Path(path))
    else:
        report(read(Path(arguments[0])))


if __name__ == "__main__":
    main()
