"""What Optuna's trials have cost."""

from __future__ import annotations

from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.common.costs import DURATION, cost_of


def cost_in(trial: FrozenTrial, name: str | None) -> float | None:
    """Return what a trial has cost, in seconds where that is its duration; None if unknown.

    Args:
        trial: The trial.
        name: "duration", the name of a user attribute, or None: nothing has a cost.
    """
    if name is None:
        return None
    if name != DURATION:
        return cost_of(trial.user_attrs.get(name))
    # Trials that were added by hand begin and end at once: their cost is unknown.
    return None if trial.duration is None else cost_of(trial.duration.total_seconds())


def problem_of_cost(trial: FrozenTrial, state: OptunaState, name: str | None) -> str:
    """Return a sentence of a trial that ends as complete without its cost; otherwise nothing."""
    is_attribute = name not in (None, DURATION) and state is OptunaState.COMPLETE
    if not is_attribute or cost_in(trial, name) is not None:
        return ""
    return (
        f"The cost of trial {trial.number} is unknown: its user attribute {name!r} is "
        f"{trial.user_attrs.get(str(name))!r}, not a number above 0. Set it in the objective, by "
        f"trial.set_user_attr({name!r}, ...). Further ones are not mentioned."
    )
