"""The centre of the space as the first trial, and more turns of the universal prior.

    PYTHONPATH=.:benchmarks:lab python lab/centre_in_users_spaces.py run FAMILY 0 3 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/centre_in_users_spaces.py report runs.jsonl

Run at commit eac0a35, whose schedule is the default here: five Sobol points, then both models in
turns. FAMILY is "users" (quick learners, tuned in the spaces of tutorials on real data sets),
"functions" (translated anew in each round), "real" (validation tasks) or "bowl"; the numbers are
the first round and the one after the last. A run goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from early_trials import FUNCTIONS, MIXED, REAL, reference, scenario
from memory_lives import space_of
from scipy.stats import wilcoxon

from dre_bench.learner_evaluations.evaluation import evaluate, mean_metric
from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors import studies
from dre_bench.learner_priors.tasks import SIGNS
from dre_bench.learner_priors.user_spaces import SPACES
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, SearchSpace

sys.path.append("/work/learners/lib/python3.11/site-packages")  # the learners

ARCHIVE = Path("/work/shared/data/tabular/datasets.npz")
EVALUATIONS = Path("benchmarks/data/learner_evaluations/evaluations.npz")
LEARNERS = ("lightgbm", "xgboost", "decision_tree", "svm", "linear", "k_nearest_neighbours")
SECONDS = 0.2  # data sets on which a learner's median evaluation takes longer are left out
N_TRIALS = {"users": 20, "functions": 30, "real": 30, "bowl": 50}
FIRST_SEED = 100  # of studies; no other page has run these
AT = (1, 3, 5, 8, 10, 12, 15, 20, 30, 50)
LEAST = 1e-4  # regret that counts as none in logarithms

Objective = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Version:
    """Say how a study begins.

    Args:
        centre: Which trial is the centre of the space; None: none is.
        n_startup: Trials before the universal prior is asked.
        until: From there to this trial all turns are the universal prior's; 0: as scheduled.
        scale: What distances of Sobol points from the centre are multiplied by.
    """

    centre: int | None = None
    n_startup: int = 5
    until: int = 0
    scale: float = 1.0


VERSIONS = {
    "default": Version(),
    "centre": Version(centre=0),
    "centre, universal": Version(centre=0, until=20),
    "centre, universal from 3": Version(centre=0, n_startup=3, until=20),
    "centre 4th, universal": Version(centre=3, n_startup=3, until=20),
    "universal from 4": Version(n_startup=4, until=20),
    "universal from 3": Version(n_startup=3, until=20),
    "universal from 4, centre 7th": Version(centre=6, n_startup=4, until=20),
    "centre 7th": Version(centre=6),
    "centre 7th, universal": Version(centre=6, until=20),
    "shrunk": Version(scale=0.8),
}


def study(
    space: SearchSpace, objective: Objective, version: Version, seed: int, n_trials: int
) -> list[float | None]:
    """Return the values of one study, larger is better; None where a trial failed."""
    recommender = Recommender(space, RecommenderSettings(), seed=seed)
    history: list[Trial] = []
    while len(history) < n_trials:
        chosen = _suggested(space, recommender, version, history)
        try:
            trial = Trial(chosen, TrialState.COMPLETE, objective(chosen))
        except (ValueError, FloatingPointError):
            trial = Trial(chosen, TrialState.FAILED)
        history.append(trial)
    assert not recommender.stats["fallbacks"]
    return [None if trial.value is None else float(trial.value) for trial in history]


def _suggested(
    space: SearchSpace, recommender: Recommender, version: Version, history: list[Trial]
) -> dict[str, Any]:
    number = len(history)
    if number == version.centre:
        return _towards_the_centre(space, recommender, 0, 0.0)
    if number < version.n_startup:
        place = number - 1 if version.centre == 0 else number
        return _towards_the_centre(space, recommender, place, version.scale)
    # Odd numbers are turns of the universal prior, and these of no branch.
    index = 4 * number + 1 if number < version.until else number
    if version.n_startup < 5 and number < 5:
        recommender = Recommender(
            space, RecommenderSettings(n_startup_trials=version.n_startup), seed=recommender.seed
        )
    suggestion = recommender.suggest(history, index=index)[0]
    if suggestion.source == "random" and version.scale != 1:
        return _towards_the_centre(space, recommender, number, version.scale)
    return suggestion.configuration


def _towards_the_centre(
    space: SearchSpace, recommender: Recommender, index: int, scale: float
) -> dict[str, Any]:
    units = recommender.suggest([], index=index)[0].units
    is_number = [not isinstance(space.domains[name], Categorical) for name in space.names]
    return space.to_configuration(np.where(is_number, 0.5 + scale * (units - 0.5), units))


# ---- tasks


def tasks(family: str, number: int) -> Iterator[tuple[tuple[str, ...], SearchSpace, Objective]]:
    """Yield the key, the space and the objective of each task of a round."""
    if family == "users":
        yield from _of_users(number)
        return
    if family == "bowl":
        names = [("bowl", 5)]  # at its own place
    elif family == "functions":
        names = [(name, 10 + number) for name in FUNCTIONS] + [
            (name, 10 + number) for name in MIXED
        ]
    else:
        names = []
        for name in REAL:
            validation = scenario(name).validation
            places = {(5 * number + i) % len(validation) for i in range(5)}
            names += [(name, int(validation[place])) for place in sorted(places)]
    for name, task in names:
        of = scenario(name)
        yield (
            (name, str(task)),
            space_of(of.parameters),
            lambda chosen, of=of, task=task: float(of.value(task, chosen)),
        )


@cache
def _quick() -> dict[str, list[str]]:
    """Return the data sets of each learner on which it is quick."""
    names, tables = read_tables(EVALUATIONS)
    found: dict[str, list[str]] = {}
    for (learner, _), table in tables.items():
        for dataset in np.unique(table.dataset):
            if np.median(table.seconds[table.dataset == dataset].sum(1)) < SECONDS:
                found.setdefault(learner, []).append(names[dataset])
    return found


def _of_users(number: int) -> Iterator[tuple[tuple[str, ...], SearchSpace, Objective]]:
    for title, space in SPACES.items():
        if space.learner not in LEARNERS:
            continue
        (line,) = studies.plan([title], _quick()[space.learner], range(number, number + 1))

        def objective(chosen: dict[str, Any], space: Any = space, line: Any = line) -> float:
            found = evaluate(ARCHIVE, line["dataset"], space.learner, space.configuration(chosen))
            sign: float = SIGNS[line["metric"]]
            return sign * float(mean_metric(found["metrics"], line["metric"])[-1])

        yield (title, line["dataset"], line["metric"]), SearchSpace(space.domains), objective


# ---- run and report


def run(family: str, rounds: range, path: Path, names: list[str]) -> None:
    """Run the studies that are missing."""
    done = {(*row["key"], row["seed"], row["version"]) for row in _read(path)}
    for number in rounds:
        for key, space, objective in tasks(family, number):
            for name in names:
                seed = FIRST_SEED + number
                if (*key, seed, name) in done:
                    continue
                values = study(space, objective, VERSIONS[name], seed, N_TRIALS[family])
                row = {"family": family, "key": key, "seed": seed, "version": name}
                with path.open("a") as file:
                    file.write(json.dumps({**row, "values": values}) + "\n")


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


Curves = dict[tuple[Any, ...], np.ndarray]


def regrets(rows: list[dict[str, Any]]) -> Curves:
    """Return the regret so far by key, seed and version."""
    best: dict[tuple[str, ...], float] = {}
    for row in rows:
        values = [value for value in row["values"] if value is not None]
        best[tuple(row["key"])] = max([best.get(tuple(row["key"]), -np.inf), *values])
    found = {}
    for row in rows:
        key = tuple(row["key"])
        median, known = reference(key[0], int(key[1]))
        least = max(known, best[key])
        curve = np.maximum.accumulate(row["values"])
        found[(*key, row["seed"], row["version"])] = (least - curve) / (least - median)
    return found


def regrets_of_users(rows: list[dict[str, Any]]) -> Curves:
    """Return the same as the studies of the learners' priors measure it."""
    lines = [
        {
            "space": row["key"][0],
            "dataset": row["key"][1],
            "metric": row["key"][2],
            "seed": row["seed"],
            "sampler": row["version"],
            "losses": [None if value is None else -value for value in row["values"]],
        }
        for row in rows
    ]
    return {
        key: curve for key, (curve, _) in studies.curves(lines, *read_tables(EVALUATIONS)).items()
    }


def report(path: Path, versions: list[str]) -> None:
    """Print mean regrets and paired tests against the first version, by family, over pairs."""
    rows = _read(path)
    for family in dict.fromkeys(row["family"] for row in rows):
        of = [row for row in rows if row["family"] == family]
        curves = regrets_of_users(of) if family == "users" else regrets(of)
        groups = {"all": None}
        if family == "real":
            groups |= {name: name for name in REAL}
        if family == "users":
            groups |= {name: name for name in LEARNERS}
        for title, name in groups.items():
            kept = {
                key: curve
                for key, curve in curves.items()
                if name is None
                or key[0] == name
                or (key[0] in SPACES and SPACES[key[0]].learner == name)
            }
            _print(f"{family}, {title}", kept, versions)


def _print(title: str, curves: Curves, versions: list[str]) -> None:
    pairs = set.intersection(*({key[:-1] for key in curves if key[-1] == of} for of in versions))
    if not pairs:
        return
    keys = sorted(pairs)
    n_trials = min(len(curves[(*key, of)]) for key in keys for of in versions)
    at = [number for number in AT if number <= n_trials]
    print(title, len(keys), "pairs at", at)
    found = {
        of: np.array([curves[(*key, of)][[n - 1 for n in at]] for key in keys]) for of in versions
    }
    first = found[versions[0]]
    for of, values in found.items():
        print(f"  {of:26}", " ".join(f"{value:.3f}" for value in values.mean(0)))
        if of != versions[0]:
            difference = values - first
            error = difference.std(0, ddof=1) / np.sqrt(len(keys))
            tests = [wilcoxon(d).pvalue if d.any() else 1.0 for d in difference.T]
            print(" " * 28, " ".join(f"{d:+.3f}" for d in difference.mean(0)))
            print(" " * 25, "±", " ".join(f" {e:.3f}" for e in error))
            print(" " * 25, "p", " ".join(f" {p:.3f}" for p in tests))
            better, worse = (difference < 0).sum(0), (difference > 0).sum(0)
            print(
                " " * 25,
                "n",
                " ".join(f"{b:>2}/{w:<2}" for b, w in zip(better, worse, strict=True)),
            )


if __name__ == "__main__":
    command, *given = sys.argv[1:]
    if command == "run":
        chosen = given[4:] or [*VERSIONS]
        run(given[0], range(int(given[1]), int(given[2])), Path(given[3]), chosen)
    else:
        report(Path(given[0]), given[1:] or [*VERSIONS])
