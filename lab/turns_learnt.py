"""Turns that follow what each proposer has found: ``python lab/turns_learnt.py OUT [N_TRIALS]``.

Each study is made twice: with turns one by one, and with a share of turns that is learnt from the
trials. A trial succeeds if it is among the best tenth of those before it, three at least; the
share of the universal prior is its rate of successes among its last ten trials against that of
the ensemble, each as a Beta distribution's mean, between a quarter and three quarters.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import optuna
from paired_studies import run_missing, runs, studied

from dre_bench.tasks import Scenario
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import schedule
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.lists import final_value
from dre_plugins.recommend.schedule import TurnRules

FIRST = 10  # from this trial on, turns are learnt
WINDOW = 10  # of so many trials of each proposer
LEAST = 0.25  # share of each proposer
FUNCTIONS = {"branches": 2, "mixed": 2, "hartmann6": 2, "levy8": 2, "ackley5": 1, "rosenbrock5": 1}
FIXED = schedule.has_universal_turn


def succeeded(values: list[float]) -> list[bool]:
    """Return which trials are among the best tenth of those before them, three at least."""
    found = []
    for number, value in enumerate(values):
        before = np.sort(values[:number])[::-1]
        rank = max(3, number // 10)
        found.append(len(before) < rank or value > before[rank - 1])
    return found


def share_of_universal(is_universal: list[bool], success: list[bool]) -> float:
    """Return the share of turns that the universal prior is to have."""
    rates = []
    for whose in (True, False):
        own = [success[i] for i in range(FIRST, len(is_universal)) if is_universal[i] is whose]
        own = own[-WINDOW:]
        rates.append((sum(own) + 1) / (len(own) + 2))
    return float(np.clip(rates[0] / sum(rates), LEAST, 1 - LEAST))


def learnt(index: int, evidence: Evidence, rules: TurnRules) -> bool:
    """Return whose turn it is; a function of the trials, as the turns before are made again."""
    if index < FIRST or len(evidence.trials) < index:
        return FIXED(index, evidence, rules)
    finals = [final_value(trial) for trial in evidence.trials]
    values = [-np.inf if value is None else value for value in finals]
    success = succeeded(values)
    is_universal = [number >= 5 and number % 2 == 1 for number in range(FIRST)]
    wanted = 0.0
    for number in range(FIRST, index + 1):
        wanted += share_of_universal(is_universal, success[:number])
        is_universal.append(wanted > sum(is_universal[FIRST:]) + 0.5)
    return is_universal[index]


def values_of(
    scenario: Scenario, task: int, seed: int, n_trials: int, is_learnt: bool
) -> list[float]:
    """Return the values of a study."""
    schedule.has_universal_turn = learnt if is_learnt else FIXED
    sampler = DRESampler(seed=seed, prior="universal")
    study = studied(sampler, lambda trial: scenario.objective(trial, task), n_trials)
    return [trial.value for trial in study.trials]


def main(out: str, n_trials: str = "60") -> None:
    """Append a line for each run that is not there."""
    variants = {
        name: partial(values_of, n_trials=int(n_trials), is_learnt=is_learnt)
        for name, is_learnt in (("fixed", False), ("learnt", True))
    }
    run_missing(out, runs(FUNCTIONS, n_seeds=2, first=15), variants, prefix="turns/")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main(*sys.argv[1:])
