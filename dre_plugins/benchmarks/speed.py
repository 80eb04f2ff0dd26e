"""Measure seconds per suggestion, as ratios within one run.

    python -m dre_plugins.benchmarks.speed

prints, on one thread, the median time of a suggestion by number of trials; the same for Optuna's
samplers; and the time of the paper's procedure (members fitted one by one, 1000 epochs each).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import optuna
import torch

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.engine.settings import get_preset

DIMENSION = 10


def sphere_study(n_trials: int, sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    """Return a study of a noisy sphere with `n_trials` random trials in it."""
    rng = np.random.default_rng(0)
    distribution = optuna.distributions.FloatDistribution(-1.0, 1.0)
    study = optuna.create_study(sampler=sampler)
    for x in rng.uniform(-1.0, 1.0, (n_trials, DIMENSION)):
        study.add_trial(
            optuna.create_trial(
                params={f"x{i}": float(v) for i, v in enumerate(x)},
                distributions={f"x{i}": distribution for i in range(DIMENSION)},
                value=float((x**2).sum() + 0.1 * rng.standard_normal()),
            )
        )
    return study


def seconds_per_suggestion(
    make: Callable[[], optuna.samplers.BaseSampler], n_trials: int, repeats: int
) -> float:
    """Return the median seconds from `ask` to the last suggested parameter."""
    study = sphere_study(n_trials, make())
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        trial = study.ask()
        for i in range(DIMENSION):
            trial.suggest_float(f"x{i}", -1.0, 1.0)
        seconds.append(time.perf_counter() - start)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return float(np.median(seconds[1:]))  # the first one pays for imports


def paper_procedure_seconds(n_trials: int) -> float:
    """Return the seconds to fit the paper's members one by one, as its code does.

    One `torch.nn.Sequential` per member, weighted ListMLE through `log(cumsum(exp))`, Adam,
    1000 epochs; timed on a tenth of the epochs and scaled.
    """
    preset = get_preset("paper")
    epochs = preset.from_random.n_steps // 10
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(n_trials, DIMENSION, generator=generator)
    discount = 1.0 / torch.log(torch.arange(n_trials) + 2.0)
    start = time.perf_counter()
    for _ in range(preset.scorer.n_members):
        widths = [DIMENSION, *preset.scorer.hidden]
        layers: list[torch.nn.Module] = []
        for n_in, n_out in pairwise(widths):
            layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        scorer = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))
        optimiser = torch.optim.Adam(scorer.parameters(), lr=preset.from_random.learning_rate)
        for _ in range(epochs):
            scores = scorer(features)[:, 0].exp()
            tail = scores.flip(-1).cumsum(-1).flip(-1)
            loss = (discount * (tail.log() - scores.log())).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return 10.0 * (time.perf_counter() - start)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[10, 50, 100, 300, 1000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers: dict[str, Callable[[], optuna.samplers.BaseSampler]] = {
        "DRESampler": lambda: DRESampler(seed=0, n_threads=options.threads),
        "TPESampler": lambda: optuna.samplers.TPESampler(seed=0),
        "GPSampler": lambda: optuna.samplers.GPSampler(seed=0),
    }
    print(f"| seconds per suggestion, {DIMENSION} parameters | " + " | ".join(samplers) + " |")
    print("|---|" + "---|" * len(samplers))
    for n_trials in options.trials:
        row = [
            seconds_per_suggestion(make, n_trials, options.repeats) for make in samplers.values()
        ]
        print(f"| {n_trials} trials | " + " | ".join(f"{s:.3f}" for s in row) + " |", flush=True)
    paper = paper_procedure_seconds(100)
    ours = seconds_per_suggestion(samplers["DRESampler"], 100, options.repeats)
    print(
        f"\nAt 100 trials the paper's procedure fits for {paper:.1f} s, "
        f"a whole suggestion takes {ours:.3f} s: {paper / ours:.0f} times faster."
    )


if __name__ == "__main__":
    main()
