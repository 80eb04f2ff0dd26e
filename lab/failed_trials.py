"""What failed trials should mean: `failed="model"`, "worst" or "ignore".

    PYTHONPATH=.:benchmarks:lab nice python lab/failed_trials.py run 0 20 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/failed_trials.py report runs.jsonl

Validation tasks of decision trees and XGBoost, 60 trials. Trials fail in the region of
`dre_bench.problems.real_studies`, which is 30 % of the space, or by chance, each with the same
probability. The numbers are the first and last seed. A run goes on where it stopped.
"""

from __future__ import annotations

import sys
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from paired_studies import compare, complete, regrets, studied
from tuning_tasks import scenario_of

from dre_bench.learner_evaluations.records import read
from dre_bench.problems.real_studies import CRASH_SHARE, risk_of
from dre_plugins import DRESampler

NAMES = ("rbv2_rpart", "rbv2_xgboost")
KINDS = ("region", "30 % by chance", "10 % by chance")
RULES = ("worst", "model", "ignore")
N_TRIALS, AT = 60, (10, 15, 20, 25, 30, 40, 50, 60)


class SimulatedFailure(RuntimeError):
    """What a trial that fails raises."""


def values_of(name: str, task: int, seed: int, kind: str, rule: str) -> dict[str, Any]:
    """Return the values of a study, None of failed trials."""
    seed = zlib.crc32(f"{name}{task}{seed}".encode())
    scenario, rng = scenario_of(name), np.random.default_rng([seed, 7])
    sample = scenario.random_configurations(1000, np.random.default_rng(task))
    border = np.quantile([risk_of(scenario, each) for each in sample], 1.0 - CRASH_SHARE)

    def objective(trial: optuna.Trial) -> float:
        configuration = scenario.suggest(trial)
        if kind == "region":
            has_failed = risk_of(scenario, configuration) > border
        else:
            has_failed = 100 * rng.random() < float(kind.split()[0])
        if has_failed:
            raise SimulatedFailure
        return scenario.value(task, configuration)

    sampler = DRESampler(seed=seed, prior="universal", memory=False, failed=rule)
    study = studied(sampler, objective, N_TRIALS, catch=SimulatedFailure)
    return {"values": [trial.value for trial in study.trials]}


def run(first: int, last: int, path: Path) -> None:
    keys = []
    for seed, name, kind, rule in product(range(first, last), NAMES, KINDS, RULES):
        validation = scenario_of(name).validation
        keys.append((name, int(validation[5 * seed % len(validation)]), seed, kind, rule))
    complete(path, keys, values_of)


def report(path: Path) -> None:
    """Print mean regrets: 0 is the best value known where trials may succeed, 1 the median."""
    studies: dict[tuple[str, int, int, str], dict[str, np.ndarray]] = {}
    for row in read(path):
        *key, rule = row["key"]
        studies.setdefault(tuple(key), {})[rule] = np.array(row["values"], dtype=float)
    for kind in KINDS:
        for name in (*NAMES, "both"):
            pairs = [
                key
                for key, rules in studies.items()
                if key[3] == kind and name in (key[0], "both") and {*RULES} <= {*rules}
            ]
            if not pairs:
                continue
            late = [
                f"{rule} {np.mean([np.isnan(studies[k][rule])[30:].mean() for k in pairs]):.2f}"
                for rule in RULES
            ]
            print(f"{kind}, {name}; failed from trial 30 on: {', '.join(late)}")
            found = {rule: [_regrets(studies, key, rule) for key in pairs] for rule in RULES}
            compare(found, AT, "worst")


def _regrets(studies: dict, key: tuple[str, int, int, str], rule: str) -> np.ndarray:
    name, task, _, kind = key
    scenario, is_region = scenario_of(name), kind == "region"
    sample = scenario.random_configurations(1000, np.random.default_rng(task))
    values = scenario.evaluate_many(task, sample)[scenario.metric]
    alike = [
        rules
        for other, rules in studies.items()
        if other[:2] == key[:2] and (other[3] == "region") == is_region
    ]
    best = max(np.nanmax(found) for rules in alike for found in rules.values())
    best = best if is_region else max(best, values.max())
    return regrets(studies[key][rule], best, float(np.median(values)), AT).clip(max=1.0)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1] == "run":
        run(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        report(Path(sys.argv[2]))
