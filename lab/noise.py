"""Studies whose values have Gaussian noise, with all samplers in one run.

    PYTHONPATH=.:benchmarks:lab nice python lab/noise.py run noise.jsonl .2
    PYTHONPATH=.:benchmarks:lab python lab/noise.py report noise.jsonl

The number is the standard deviation of the noise in units of regret: 0 is the best value of a
task, 1 the median of random configurations. The samplers see noisy values; what is reported is the
true regret of the trial with the best noisy value. A run goes on where it stopped.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from paired_studies import compare, run_missing, runs, studied

from dre_bench.learner_evaluations.records import read
from dre_bench.problems.maximise import reference
from dre_bench.samplers import make_sampler
from dre_bench.tasks import Scenario

N_TRIALS, AT = 60, (10, 20, 30, 40, 50, 60)
FUNCTIONS = {
    name: 3 for name in ("branin", "hartmann6", "ackley5", "rosenbrock5", "bowl", "mixed")
}
SAMPLERS = {
    "DRESampler": "dre:memory=False",
    "ensemble": "dre:prior=None,memory=False",
    "TPESampler": "tpe:multivariate=True,constant_liar=True",
    "GPSampler": "gp",
    "RandomSampler": "random",
}


def study_of(name: str, noise: float, scenario: Scenario, task: int, seed: int) -> list[float]:
    """Return the true values of the best noisy trial so far, at each trial."""
    known = reference(scenario, task)
    scale = noise * (known["best"] - known["median"])
    rng = np.random.default_rng(seed)
    true: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        true.append(float(scenario.objective(trial, task)))
        return true[-1] + scale * float(rng.normal())

    study = studied(make_sampler(SAMPLERS[name], seed, ""), objective, N_TRIALS)
    noisy = np.array([trial.value for trial in study.trials])
    return [true[int(np.argmax(noisy[: n + 1]))] for n in range(N_TRIALS)]


def run(path: str, noise: float) -> None:
    """Run the studies that are missing."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    variants = {name: partial(study_of, name, noise) for name in SAMPLERS}
    run_missing(path, runs(FUNCTIONS, 1, 0), variants)


def report(path: str) -> None:
    """Print mean regret by sampler, with pairs against the first one."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in SAMPLERS}
    for record in read(Path(path)):
        best = max(record["best"], *(max(record[name]) for name in SAMPLERS))
        for name in SAMPLERS:
            values = np.array(record[name])[np.array(AT) - 1]
            found[name].append((best - values) / (best - record["median"]))
    compare(found, AT, "DRESampler")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], float(sys.argv[3]))
    else:
        report(sys.argv[2])
