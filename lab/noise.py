"""Studies whose values have Gaussian noise, with all samplers in one run.

    PYTHONPATH=.:benchmarks:lab nice python lab/noise.py run noise.jsonl .2
    PYTHONPATH=.:benchmarks:lab python lab/noise.py report noise.jsonl

The number is the standard deviation of the noise in units of regret: 0 is the best value of a
task, 1 the median of random configurations. The samplers see noisy values; what is reported is the
true regret of the trial with the best noisy value. A run goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import optuna
from paired_studies import append, runs
from scipy.stats import wilcoxon

from dre_bench.tasks import Scenario
from dre_plugins import DRESampler

N_TRIALS, AT = 60, (10, 20, 30, 40, 50, 60)
FUNCTIONS = {
    name: 3 for name in ("branin", "hartmann6", "ackley5", "rosenbrock5", "bowl", "mixed")
}
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "DRESampler": lambda seed: DRESampler(seed=seed, prior="universal", memory=False),
    "ensemble": lambda seed: DRESampler(seed=seed, prior=None, memory=False),
    "TPESampler": lambda seed: optuna.samplers.TPESampler(
        seed=seed, multivariate=True, constant_liar=True
    ),
    "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "RandomSampler": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def study_of(name: str, noise: float, scenario: Scenario, task: int, seed: int) -> list[float]:
    """Return the true values of the best noisy trial so far, at each trial."""
    sample = scenario.random_configurations(2000, np.random.default_rng(task))
    values = scenario.evaluate_many(task, sample)[scenario.metric]
    scale = noise * float(values.max() - np.median(values))
    rng = np.random.default_rng(seed)
    true: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        true.append(float(scenario.objective(trial, task)))
        return true[-1] + scale * float(rng.normal())

    study = optuna.create_study(direction="maximize", sampler=SAMPLERS[name](seed))
    study.optimize(objective, N_TRIALS)
    noisy = np.array([trial.value for trial in study.trials])
    return [true[int(np.argmax(noisy[: n + 1]))] for n in range(N_TRIALS)]


def run(path: str, noise: float) -> None:
    """Run the studies that are missing."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    variants = {name: partial(study_of, name, noise) for name in SAMPLERS}
    append(path, runs(FUNCTIONS, 1, 0), variants)


def report(path: str) -> None:
    """Print mean regret by sampler, with pairs against the first one."""
    records = [json.loads(line) for line in open(path)]
    regrets = {name: [] for name in SAMPLERS}
    for record in records:
        best = max(record["best"], *(max(record[name]) for name in SAMPLERS))
        for name in SAMPLERS:
            values = np.array(record[name])[np.array(AT) - 1]
            regrets[name].append((best - values) / (best - record["median"]))
    first = np.array(regrets[next(iter(SAMPLERS))])
    print(len(records), "pairs", *AT, sep="\t")
    for name, found in regrets.items():
        now = np.array(found)
        text = [f"{mean:.3f}" for mean in now.mean(axis=0)]
        for place in (1, len(AT) - 1):
            difference = now[:, place] - first[:, place]
            if difference.any():
                p = wilcoxon(difference).pvalue
                text.append(f"{(difference < 0).sum()}/{(difference > 0).sum()}, p = {p:.3f}")
        print(name, *text, sep="\t")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], float(sys.argv[3]))
    else:
        report(sys.argv[2])
