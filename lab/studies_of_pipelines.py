"""Studies of pipelines, forecasts and toys whose categories matter, with several samplers.

    export DATASETS=FILE PYTHONPATH=.:benchmarks:lab
    python lab/studies_of_pipelines.py run branches 0 16 runs.jsonl
    python lab/studies_of_pipelines.py report runs.jsonl

The numbers are the first and last seed; each seed has the data set or series `seed % 8`. Names of
samplers may follow the file. Forecasts need LightGBM and statsmodels, for its series. Runs go on
where they stopped.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from paired_studies import compare, complete, regrets, studied
from pipeline_spaces import branches, categories, forecast, mixed, toy

from dre_bench.learner_evaluations.records import read
from dre_bench.samplers import make_sampler

AT, N_TRIALS = (5, 10, 15, 20, 30, 40), 40
SAMPLERS = {
    "DRE": "dre:prior=auto,memory=False",
    "TPE, multivariate": "tpe:multivariate=True,group=True",
    "TPE": "tpe",
    "GP": "gp",
    "random": "random",
    "DRE, no order": "dre:prior=auto,memory=False,order_numeric_choices=False",
}
SPACES: dict[str, Callable[..., float]] = {
    "branches": branches,
    "categories": categories,
    "forecast": forecast,
    "mixed": mixed,
    **{f"toy {effect}": partial(toy, effect=effect) for effect in (0.3, 1, 3, 10)},
}


def run(space: str, first: int, last: int, path: Path, samplers: list[str]) -> None:
    """Append the studies of a space that are not there yet."""
    names = samplers or [n for n in SAMPLERS if n != "GP" or space != "branches"]
    names = [n for n in names if n != "DRE, no order" or space == "forecast"]
    keys = ((space, seed, name) for seed in range(first, last) for name in names)
    complete(path, keys, row_of)


def row_of(space: str, seed: int, name: str) -> dict[str, Any]:
    """Return values and parameters of a study, and its seconds."""
    start, sampler = time.time(), make_sampler(SAMPLERS[name], seed, "")
    study = studied(sampler, partial(SPACES[space], seed=seed), N_TRIALS)
    return {
        "values": [trial.value for trial in study.trials],
        "params": [trial.params for trial in study.trials],
        "seconds": time.time() - start,
    }


@cache
def _rows(path: Path) -> dict[tuple[str, int, str], np.ndarray]:
    return {tuple(row["key"]): np.array(row["values"]) for row in read(path)}


def regrets_by_seed(path: Path, space: str, name: str) -> dict[int, np.ndarray]:
    """Return regrets by seed: 0 is the best value of the task in all studies, 1 the median."""
    of_space, found = {k: v for k, v in _rows(path).items() if k[0] == space}, {}
    for (_, seed, sampler), values in of_space.items():
        # Functions differ with every seed, data sets with eight; their optimum is 0.
        is_function = space not in ("branches", "categories", "forecast")
        period = 1000 if is_function else 8
        alike = {k: v for k, v in of_space.items() if (k[1] - seed) % period == 0}
        best = 0.0 if is_function else max(v.max() for v in alike.values())
        random = [v for k, v in alike.items() if k[2] == "random"]
        if sampler == name and random:  # which tell the scale
            found[seed] = regrets(values, best, float(np.median(np.concatenate(random))), AT)
    return found


def report(path: Path) -> None:
    """Print mean regrets, each sampler beside DRE."""
    for space in SPACES:
        ours = regrets_by_seed(path, space, "DRE")
        for name in SAMPLERS:
            other = regrets_by_seed(path, space, name)
            if name != "DRE" and (seeds := sorted(ours.keys() & other.keys())):
                print(space, end=": ")
                pairs = {"DRE": ours, name: other}
                compare({who: [of[s] for s in seeds] for who, of in pairs.items()}, AT, "DRE")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1] == "run":
        run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]), sys.argv[6:])
    else:
        report(Path(sys.argv[2]))
