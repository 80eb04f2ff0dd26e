"""Fewer steps of the ensemble's fit: ``python lab/ensemble_steps.py OUT [N_TRIALS [alone]]``.

Each study of a validation task is made once with every variant: beside the universal prior's turns
as by default, or alone, which is `prior=None`. A run goes on where it was interrupted.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import optuna
from paired_studies import run_missing, runs, studied
from targets_by_evidence import FUNCTIONS

from dre_bench.tasks import Scenario
from dre_plugins import Settings
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.engine.settings import PRESETS, FittingSettings, Preset

DEFAULT = PRESETS["default"]


FEWER = {
    "150 steps": FittingSettings(n_steps=150, learning_rate=0.03),
    "115 steps": FittingSettings(n_steps=115, learning_rate=0.045, beta2=0.95),
}
PRESETS_OF = {name: replace(DEFAULT, from_random=fitting) for name, fitting in FEWER.items()}


def values_of(
    scenario: Scenario, task: int, seed: int, *, n_trials: int, preset: Preset, prior: str | None
) -> list[float]:
    """Return the values of a study."""
    settings = Settings(preset=preset)
    sampler = DRESampler(seed=seed, prior=prior, memory=False, settings=settings)
    study = studied(sampler, lambda trial: scenario.objective(trial, task), n_trials)
    return [trial.value for trial in study.trials]


def main(out: str, n_trials: str = "50", turns: str = "") -> None:
    """Append a line for each run that is not there."""
    prior = None if turns == "alone" else "universal"
    variants = {
        name: partial(values_of, n_trials=int(n_trials), preset=preset, prior=prior)
        for name, preset in PRESETS_OF.items()
    }
    run_missing(out, runs(FUNCTIONS, n_seeds=8, first=8), variants, prefix="steps/")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main(*sys.argv[1:])
