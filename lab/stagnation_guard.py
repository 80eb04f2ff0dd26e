"""Exploration of stagnating studies: ``python lab/stagnation_guard.py OUT [N_TRIALS]``.

Each run is made twice: as it is, and with the explorations of `recommend/schedule.py` beside the
universal prior as well.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import optuna
from paired_studies import append, runs

from dre_bench.tasks import Scenario
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import surrogates
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.schedule import Turn, TurnRules, is_exploration_due, proposer_for

# Tasks of each function in a round; another round has others.
FUNCTIONS = {"branches": 4, "mixed": 3, "hartmann6": 2, "levy8": 2}


def exploring(
    index: int, evidence: Evidence, rules: TurnRules, *, may_explore: bool = True, **checks: Any
) -> Turn:
    """Return who proposes a suggestion if stagnating studies explore."""
    turn = proposer_for(index, evidence, rules, may_explore=may_explore, **checks)
    is_due = turn == "model" and may_explore and is_exploration_due(index, evidence)
    return "exploration" if is_due else turn


def values_of(
    scenario: Scenario, task: int, seed: int, n_trials: int, explores: bool
) -> list[float]:
    """Return the values of a study."""
    surrogates.proposer_for = exploring if explores else proposer_for
    study = optuna.create_study(
        direction="maximize", sampler=DRESampler(seed=seed, prior="universal")
    )
    study.optimize(lambda trial: scenario.objective(trial, task), n_trials=n_trials)
    return [trial.value for trial in study.trials]


def main(out: str, n_trials: str = "50") -> None:
    """Append a line for each run that is not there."""
    variants = {
        name: partial(values_of, n_trials=int(n_trials), explores=explores)
        for name, explores in (("none", False), ("explores", True))
    }
    append(out, runs(FUNCTIONS, n_seeds=3, first=1), variants)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main(*sys.argv[1:])
