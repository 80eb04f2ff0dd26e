"""First trials in ranges around 0: how far from the middle of the range should they be?

    PYTHONPATH=.:benchmarks:lab nice python lab/ranges_around_zero.py run 0.25 0 3 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/ranges_around_zero.py report 0.25 runs.jsonl
    PYTHONPATH=.:benchmarks:lab nice python lab/ranges_around_zero.py bowl

Functions of BoTorch are moved by up to the given share of each range; optima that are known lie at
least .03 of the range from its bounds. The numbers are the first seed and the one after the last.
A run goes on where it stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from memory_lives import space_of
from paired_studies import compare, regrets
from translated_functions import OPTIMUM, Translated

from dre_bench.learner_evaluations.records import append, read
from dre_bench.synthetic import synthetic_scenario
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import SearchSpace, candidates

NAMES = (
    *("Levy", "Levy6", "Rosenbrock", "StyblinskiTang", "Griewank", "DixonPrice", "Powell"),
    *("Ackley", "SixHumpCamel", "Rastrigin"),
)
# Distances of the first trials from the middle, as shares of those of Sobol points.
VERSIONS = {
    "as it was": (),
    "middle": (0.0,),
    ".8": (0.8,) * 4,
    "middle, .8": (0.0, 0.8, 0.8, 0.8),
    "middle, .6": (0.0, 0.6, 0.6, 0.6),
}
N_TRIALS, N_BOWL_TRIALS, N_BOWL_SEEDS = 30, 50, 10
AT = (1, 3, 5, 8, 10, 15, 20, 30)

Objective = Callable[[dict[str, Any]], float]


def moved(name: str, share: float) -> Translated:
    """Return a function of BoTorch that is moved by up to a share of its ranges, by its task."""
    return Translated(name, share, margin=0.03, first_seed=5000)


def study(
    space: SearchSpace, objective: Objective, version: str, seed: int, n_trials: int
) -> list[float]:
    """Return the values of one study, larger is better."""
    shares = VERSIONS[version]

    def towards_middle(unit: float, n_after: int, n_drawn: int) -> float:
        is_drawn = 0 <= n_after < len(shares)
        return 0.5 + shares[n_after] * (unit - 0.5) if is_drawn else unit

    candidates._towards_middle = towards_middle
    recommender = Recommender(space, RecommenderSettings(), seed=seed)
    history: list[Trial] = []
    for number in range(n_trials):
        chosen = recommender.suggest(history, index=number)[0].configuration
        history.append(Trial(chosen, TrialState.COMPLETE, objective(chosen)))
    return [float(trial.value) for trial in history if trial.value is not None]


def run(share: float, seeds: range, path: Path) -> None:
    """Run the studies that are missing."""
    done = {(row["name"], row["seed"], row["version"]) for row in read(path)}
    for seed in seeds:
        for name in NAMES:
            scenario = moved(name, share)
            objective = partial(scenario.value, seed)
            for version in VERSIONS:
                if (name, seed, version) in done:
                    continue
                values = study(space_of(scenario.parameters), objective, version, seed, N_TRIALS)
                row = {"name": name, "seed": seed, "version": version, "values": values}
                append(path, row)


def report(share: float, path: Path) -> None:
    """Print mean regrets, and how many studies are better and worse than as it was."""
    found = {(row["name"], row["seed"], row["version"]): row["values"] for row in read(path)}
    keys = sorted({key[:2] for key in found if all((*key[:2], v) in found for v in VERSIONS)})
    of_versions: dict[str, list[np.ndarray]] = {version: [] for version in VERSIONS}
    for name, seed in keys:
        scenario = moved(name, share)
        drawn = scenario.random_configurations(2000, np.random.default_rng(1))
        values = scenario.evaluate_many(seed, drawn)[scenario.metric]
        of_studies = [max(found[name, seed, version]) for version in VERSIONS]
        best, median = max(values.max(), *of_studies, OPTIMUM.get(name, 0.0)), np.median(values)
        for version, lines in of_versions.items():
            lines.append(regrets(found[name, seed, version], best, float(median), AT))
    compare(of_versions, AT, "as it was")


def bowl() -> None:
    """Print the mean distance from the least value of the bowl, as published."""
    scenario = synthetic_scenario("bowl")
    space = space_of(scenario.parameters)
    for version in VERSIONS:
        values = [
            study(space, partial(scenario.value, 0), version, seed, N_BOWL_TRIALS)
            for seed in range(N_BOWL_SEEDS)
        ]
        means = -np.maximum.accumulate(values, axis=1).mean(0)
        print(version, [f"{means[t - 1]:.2f}" for t in (1, 5, 10, 15, 20, 30, 40, 50)])


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(float(sys.argv[2]), range(int(sys.argv[3]), int(sys.argv[4])), Path(sys.argv[5]))
    elif sys.argv[1] == "report":
        report(float(sys.argv[2]), Path(sys.argv[3]))
    else:
        bowl()
