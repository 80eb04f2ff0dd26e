"""Targets of the universal prior: ``python lab/targets_by_evidence.py OUT [N_TRIALS]``.

Each study is made once with every version: the blend for everybody, both by their
evidence, the same where values alone have a mean of 0 as well, and values alone for everybody.
``python lab/targets_by_evidence.py bowl OUT`` makes the bowl of issue N, ten seeds of 50 trials.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import optuna
from paired_studies import Run, run_missing, runs, studied

from dre_bench.synthetic import synthetic_scenario
from dre_bench.tasks import Scenario
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import universal_prior
from dre_plugins.universal.targets import Targets

Alternatives = tuple[Targets, ...]
FUNCTIONS = dict.fromkeys(
    ("branches", "mixed", "hartmann6", "levy8", "ackley5", "rosenbrock5", "bowl"), 1
)
BY_EVIDENCE: Callable[..., Alternatives] = universal_prior.possible_targets
VERSIONS: dict[str, Callable[[Alternatives], Alternatives]] = {
    "today": lambda both: both[:1],
    "by evidence": lambda both: both,
    "by evidence, mean 0": lambda both: tuple(replace(of, mean_variance=0.0) for of in both),
    "values alone": lambda both: both[-1:],
}


def values_of(
    scenario: Scenario, task: int, seed: int, *, n_trials: int, version: str
) -> list[float]:
    """Return the values of a study."""

    def chosen(*given: Any) -> Alternatives:
        return VERSIONS[version](BY_EVIDENCE(*given))

    setattr(universal_prior, "possible_targets", chosen)  # noqa: B010
    sampler = DRESampler(seed=seed, prior="universal", memory=False)
    study = studied(sampler, lambda trial: scenario.objective(trial, task), n_trials)
    return [trial.value for trial in study.trials]


def main(out: str, n_trials: str = "50", plan: list[Run] | None = None) -> None:
    """Append a line for each run that is not there."""
    variants = {
        version: partial(values_of, n_trials=int(n_trials), version=version)
        for version in VERSIONS
    }
    run_missing(out, plan or runs(FUNCTIONS, n_seeds=8, first=8), variants, prefix="level/")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1] == "bowl":
        bowl = synthetic_scenario("bowl")
        main(sys.argv[2], plan=[("bowl", bowl, 0, seed) for seed in range(10)])
    else:
        main(*sys.argv[1:])
