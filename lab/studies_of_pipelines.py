"""Studies of pipelines, forecasts and toys whose categories matter, with several samplers.

    PYTHONPATH=.:benchmarks:lab nice python lab/studies_of_pipelines.py run branches 0 16 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/studies_of_pipelines.py report runs.jsonl

The numbers are the first and last seed; each seed has the data set or series `seed % 8`. The data
are /work/shared/data/tabular/datasets.npz and series of statsmodels. Runs go on where they stopped.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import optuna
from pipeline_objectives import forecast_error, fold_score

from dre_plugins import DRESampler
from dre_plugins.recommend.settings import Settings

AT, N_TRIALS = (5, 10, 15, 20, 30, 40), 40
NUMERIC = "vehicle ionosphere sonar diabetes glass spambase waveform5000 column3C".split()
MIXED = "anneal credit-a cmc colic cylinder-bands heart-h hepatitis flags".split()
SERIES = "co2 elnino sunspots realgdp unemp cpi m1 tbilrate".split()
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "DRE": lambda seed: DRESampler(seed=seed, memory=False),
    "TPE, multivariate": lambda s: optuna.samplers.TPESampler(multivariate=True, group=True, seed=s),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "GP": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "DRE, no order": lambda seed: DRESampler(
        seed=seed, memory=False, settings=Settings(order_numeric_choices=False)
    ),
}


def branches(trial: optuna.Trial, seed: int) -> float:
    """Score a selection, a scaler and one of three learners with parameters of its own."""
    kept = trial.suggest_float("kept", 0.1, 1.0)
    scaler = trial.suggest_categorical("scaler", ["standard", "none"])
    learner = trial.suggest_categorical("learner", ["logistic", "trees", "vectors"])
    if learner == "logistic":
        given = {"C": trial.suggest_float("C", 1e-3, 1e3, log=True)}
    elif learner == "trees":
        given = {
            "max_depth": trial.suggest_int("depth", 2, 20),
            "min_samples_leaf": trial.suggest_int("leaf", 1, 20, log=True),
        }
    else:
        given = {
            "C": trial.suggest_float("C svc", 1e-2, 1e3, log=True),
            "gamma": trial.suggest_float("gamma", 1e-4, 1.0, log=True),
        }
    return fold_score(NUMERIC[seed % 8], "one-hot", scaler, kept, learner, given)


def categories(trial: optuna.Trial, seed: int) -> float:
    """Score an encoder, a scaler, a selection and one of three learners with one number each."""
    encoder = trial.suggest_categorical("encoder", ["ordinal", "one-hot", "mean", "count", "none"])
    scaler = trial.suggest_categorical("scaler", ["none", "standard", "range", "quantile"])
    learner = trial.suggest_categorical("learner", ["logistic", "trees", "neighbours"])
    kept, size = trial.suggest_float("kept", 0.1, 1.0), trial.suggest_float("size", 0.0, 1.0)
    weight = trial.suggest_float("weight", 0.0, 1.0)
    given = {
        "logistic": {"C": 10.0 ** (6.0 * size - 3.0), "l1_ratio": weight, "solver": "saga"},
        "trees": {"min_samples_leaf": round(20.0 ** (1.0 - size)), "max_features": max(weight, 0.05)},
        "neighbours": {"n_neighbors": round(40.0 ** (1.0 - size)), "p": 1.0 + 2.0 * weight},
    }[learner]
    return fold_score(MIXED[seed % 8], encoder, scaler, kept, learner, given)


def forecast(trial: optuna.Trial, seed: int) -> float:
    """Score LightGBM on a series, in the space of mlforecast 1.1.0."""
    given = {
        "n_estimators": trial.suggest_int("n_estimators", 20, 1000, log=True),
        "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
        "lambda_l2": trial.suggest_float("lambda_l2", 1e-8, 10.0, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 2, 4096, log=True),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.5, 1.0),
        "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
        "objective": trial.suggest_categorical("objective", ["l1", "l2"]),
    }
    target = trial.suggest_categorical("target_transforms_idx", range(7))
    lags = trial.suggest_categorical("lags_idx", range(7))
    means = trial.suggest_categorical("lag_transforms_idx", range(4))
    return -forecast_error(SERIES[seed % 8], target, lags, means, given)


def toy(trial: optuna.Trial, seed: int, effect: float) -> float:
    """Return minus a square of up to 25 or more, with one good category of five."""
    rng = np.random.default_rng([seed, 1])
    centre, good = rng.uniform(-3.0, 3.0), "abcde"[rng.integers(5)]
    x, rate = trial.suggest_float("x", -5, 5), trial.suggest_float("rate", 1e-6, 1.0, log=True)
    kind = trial.suggest_categorical("kind", list("abcde"))
    return -((x - centre) ** 2) - effect * (kind != good) - rate


SPACES: dict[str, Callable[[optuna.Trial, int], float]] = {
    "branches": branches,
    "categories": categories,
    "forecast": forecast,
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
            row = {"key": (space, seed, name), "values": [t.value for t in study.trials]}
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
        # Toys differ with every seed, data sets with eight.
        alike = {k: v for k, v in of_space.items() if (k[1] - seed) % (999 if "toy" in space else 8) == 0}
        best = 0.0 if "toy" in space else max(v.max() for v in alike.values())
        median = np.median(np.concatenate([v for k, v in alike.items() if k[2] == "random"]))
        if sampler == name:
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
