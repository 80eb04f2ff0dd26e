"""What a prior is worth when only half of the parameters agree, over other ranges.

    python -m dre_bench.overlap --data PATH --split test --seeds 2 --jobs 2

The study tunes XGBoost by the names of its scikit-learn interface: 5 of the 14 parameters of the
prior "xgboost", in other ranges, one on another scale; the booster is fixed, and the rest is at
its default. One parameter is unknown to the prior and does nothing.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_bench.runs import ONE_THREAD
from dre_bench.samplers import make_sampler, split_specifications
from dre_bench.tasks import YahpoScenario

if TYPE_CHECKING:
    import optuna

SCENARIO = "rbv2_xgboost"
CHECKPOINTS = (1, 5, 10, 25)
N_REFERENCE = 500

# What the scenario's surrogate takes for XGBoost's defaults; zeros are outside its log scales.
FIXED: dict[str, Any] = {
    "booster": "gbtree",
    "num.impute.selected.cpo": "impute.median",
    "gamma": 1e-4,
    "alpha": 1e-3,
    "lambda": 1.0,
    "colsample_bytree": 1.0,
    "colsample_bylevel": 1.0,
}


def configuration_of(trial: optuna.trial.BaseTrial) -> dict[str, Any]:
    """Ask for the tuned parameters and return a configuration of the scenario."""
    trial.suggest_float("unknown", 0.0, 1.0)
    return {
        **FIXED,
        "nrounds": trial.suggest_int("n_estimators", 20, 1000),
        "eta": trial.suggest_float("learning_rate", 0.005, 0.5, log=True),
        "max_depth": trial.suggest_int("max_depth", 2, 10),
        "subsample": trial.suggest_float("subsample", 0.4, 1.0),
        "min_child_weight": trial.suggest_float("min_child_weight", 3.0, 60.0),
    }


def run(data: Path, trials: int, key: tuple[str, int, int]) -> list[float]:
    """Run one study and return the regret after each trial."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler, task, seed = key
    scenario = YahpoScenario(data / SCENARIO)

    def value_of(trial: optuna.trial.BaseTrial) -> float:
        return scenario.evaluate(task, configuration_of(trial))["acc"]

    study = optuna.create_study(
        direction="maximize",
        sampler=make_sampler(sampler, zlib.crc32(f"{task}/{seed}".encode()), SCENARIO),
    )
    study.optimize(value_of, n_trials=trials)
    reference = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=task))
    sample = [value_of(reference.ask()) for _ in range(N_REFERENCE)]
    values = np.maximum.accumulate([trial.values[0] for trial in study.trials])
    best, median = max(*sample, values[-1]), float(np.median(sample))
    return [float((best - value) / max(best - median, 1e-9)) for value in values]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare samplers on the changed space and print mean regrets."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_bench.overlap",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--samplers", default="random,tpe,dre,dre:prior=shipped")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.update(ONE_THREAD)
    samplers = split_specifications(options.samplers)
    tasks = YahpoScenario(options.data / SCENARIO).splits[options.split]
    keys = [(s, task, seed) for s in samplers for task in tasks for seed in range(options.seeds)]
    run_one = partial(run, options.data, options.trials)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        curves = list(pool.map(run_one, keys))
    print(f"{'sampler':20} runs " + "".join(f"  @{n:<6}" for n in CHECKPOINTS))
    for sampler in samplers:
        own = np.array([c for c, key in zip(curves, keys, strict=True) if key[0] == sampler])
        figures = "".join(f"{own[:, n - 1].mean():9.3f}" for n in CHECKPOINTS)
        print(f"{sampler:20} {len(own):4}{figures}")


if __name__ == "__main__":
    main()
