"""Studies with pruned trials at equal cost: ``python lab/pruned_trials.py NAME OUT.jsonl``.

NAME is "dre", or "tpe" for Optuna's multivariate and grouped TPE. A version of DRE is measured by
running this file with that version on ``PYTHONPATH``; the runs of all names are paired.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np
import optuna
from tuning_tasks import Lcbench, Yahpo, scenario_of

from dre_bench.learner_evaluations.records import append
from dre_bench.problems.maximise import reference
from dre_plugins.adapters.optuna import DRESampler

# Each with how many full trials a study may cost.
PRUNERS: dict[str, tuple[Callable[[], optuna.pruners.BasePruner], int]] = {
    "median": (optuna.pruners.MedianPruner, 16),
    "halving": (lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=1), 8),
}
MAX_TRIALS = 60
Run = tuple[str, "Lcbench | Yahpo", int, int, str]


def sampler_of(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """Return the sampler of a name."""
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
    return DRESampler(seed=seed, prior="universal")


def study_of(name: str, scenario: Lcbench | Yahpo, task: int, seed: int, pruner: str) -> dict:
    """Return, for each trial, the cost so far as a share of the budget, and its final value."""
    make, n_full = PRUNERS[pruner]
    sampler = sampler_of(name, seed)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=make())
    spent, budget = 0.0, np.inf
    curve: list[tuple[float, float | None]] = []
    while spent < budget and len(curve) < MAX_TRIALS:
        trial = study.ask()
        steps, values, costs = scenario.curve(task, scenario.suggest(trial))
        budget = n_full * costs[-1]
        ended = len(steps) - 1
        for place, step in enumerate(steps):
            trial.report(values[place], step)
            if place < len(steps) - 1 and trial.should_prune():
                ended = place
                break
        spent += costs[ended]
        final = values[ended] if ended == len(steps) - 1 else None
        state = optuna.trial.TrialState.PRUNED if final is None else None
        study.tell(trial, final, state=state)
        curve.append((spent / budget, final))
    stats = getattr(sampler, "stats", {})
    return {"curve": curve, "universal": stats.get("universal-prior", 0)}


def runs() -> Iterator[Run]:
    """Yield the runs, scenarios and pruners in turns."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for seed in range(3):
        chosen = {"lcbench": slice(None), "rbv2_xgboost": slice(seed, None, 4)}
        chosen["rbv2_rpart"] = slice(seed, None, 6)
        for name, places in chosen.items():
            scenario = scenario_of(name)
            for task in scenario.validation[places]:
                for pruner in PRUNERS:
                    run = (name, scenario, task, seed, pruner)
                    groups.setdefault((name, pruner), []).append(run)
    for row in zip_longest(*groups.values()):
        yield from (run for run in row if run is not None)


def main(name: str, out: str) -> None:
    """Append a line for each run."""
    for scenario_name, scenario, task, seed, pruner in runs():
        run = {"scenario": scenario_name, "task": task, "seed": seed, "pruner": pruner}
        number = zlib.crc32(f"{scenario_name}/{task}/{seed}/{pruner}".encode())
        run |= reference(scenario, task)
        append(Path(out), run | {name: study_of(name, scenario, task, number, pruner)})


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main(*sys.argv[1:])
