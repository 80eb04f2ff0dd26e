"""Studies of pipelines, forecasts and toys whose categories matter, with several samplers.

    DATASETS=FILE PYTHONPATH=.:lab python lab/studies_of_pipelines.py run branches 0 16 runs.jsonl
    PYTHONPATH=.:lab python lab/studies_of_pipelines.py report runs.jsonl

The numbers are the first and last seed; each seed has the data set or series `seed % 8`. Names of
samplers may follow the file. Forecasts need LightGBM and statsmodels, for its series. Runs go on
where they stopped.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from pipeline_spaces import branches, categories, forecast, mixed, toy

from dre_plugins import DRESampler
from dre_plugins.recommend.settings import Settings

AT, N_TRIALS = (5, 10, 15, 20, 30, 40), 40
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "DRE": lambda seed: DRESampler(seed=seed, memory=False),
    "TPE, multivariate": lambda seed: optuna.samplers.TPESampler(
        multivariate=True, group=True, seed=seed
    ),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "GP": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "DRE, no order": lambda seed: DRESampler(
        seed=seed, memory=False, settings=Settings(order_numeric_choices=False)
    ),
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
    lines = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    for seed in range(first, last):
        for name in samplers or [n for n in SAMPLERS if n != "GP" or space != "branches"]:
            if (space, seed, name) in done or (name == "DRE, no order" and space != "forecast"):
                continue
            start, sampler = time.time(), SAMPLERS[name](seed)
            study = optuna.create_study(direction="maximize", sampler=sampler)
            study.optimize(partial(SPACES[space], seed=seed), n_trials=N_TRIALS)
            assert not getattr(sampler, "stats", {}).get("fallbacks")
            row: dict[str, Any] = {
                "key": (space, seed, name),
                "values": [t.value for t in study.trials],
            }
            row |= {"params": [t.params for t in study.trials], "seconds": time.time() - start}
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")


@cache
def _rows(path: Path) -> dict[tuple[str, int, str], np.ndarray]:
    rows = map(json.loads, path.read_text().splitlines())
    return {tuple(row["key"]): np.array(row["values"]) for row in rows}


def regrets(path: Path, space: str, name: str) -> dict[int, np.ndarray]:
    """Return regrets by seed: 0 is the best value of the task in all studies, 1 the median."""
    of_space, found = {k: v for k, v in _rows(path).items() if k[0] == space}, {}
    for (_, seed, sampler), values in of_space.items():
        # Functions differ with every seed, data sets with eight; their optimum is 0.
        is_function = space not in ("branches", "categories", "forecast")
        period = 1000 if is_function else 8
        alike = {k: v for k, v in of_space.items() if (k[1] - seed) % period == 0}
        best = 0.0 if is_function else max(v.max() for v in alike.values())
        if sampler == name:
            random = [v for k, v in alike.items() if k[2] == "random"]
            median = np.median(np.concatenate(random)) if random else np.nan
            so_far = np.maximum.accumulate(values)[np.array(AT) - 1]
            found[seed] = (best - so_far) / (best - median)
    return found


def report(path: Path) -> None:
    """Print mean regrets, and pairs in which DRE is better and worse with Wilcoxon's p."""
    from scipy.stats import wilcoxon

    for space in SPACES:
        ours = regrets(path, space, "DRE")
        for name in SAMPLERS:
            other = regrets(path, space, name)
            seeds = sorted(ours.keys() & other.keys())
            if not seeds:
                continue
            mine, theirs = (np.array([of[s] for s in seeds]) for of in (ours, other))
            text = []
            for n, a, b in zip(AT, mine.T, theirs.T, strict=True):
                p = wilcoxon(a, b, zero_method="zsplit").pvalue if (a != b).any() else 1.0
                counts = f"({(a < b - 1e-9).sum()}/{(a > b + 1e-9).sum()}, p={p:.3f})"
                text.append(f"@{n} {b.mean():.3f} {counts if name != 'DRE' else ''}")
            print(f"{space:10} {name:18} {len(seeds)}:", *text)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1] == "run":
        run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]), sys.argv[6:])
    else:
        report(Path(sys.argv[2]))
