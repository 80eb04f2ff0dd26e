"""Explanations of suggestions as an attribute of Optuna's trials.

It is one attribute, because each is a write to the storage, and a user attribute, because
optuna-dashboard and `Study.trials_dataframe` show those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.recommend.explanation import Explanation
from dre_plugins.space.base import is_real

EXPLANATION_KEY = "dre:explanation"

_WORDS = ("source", "past_studies")
_FIGURES = tuple(field.name for field in fields(Explanation) if field.name not in _WORDS)


def attribute_of(explanation: Explanation) -> dict[str, Any]:
    """Return what is stored of an explanation: legible as it is, without what is not known."""
    stated = {name: value for name, value in asdict(explanation).items() if value is not None}
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in stated.items()
    }


def explanation_of(trial: FrozenTrial) -> Explanation:
    """Return the explanation of a trial, of source "unknown" if it has none."""
    stored = trial.user_attrs.get(EXPLANATION_KEY)
    if isinstance(stored, Mapping) and isinstance(stored.get("source"), str):
        figures = {name: stored[name] for name in _FIGURES if is_real(stored.get(name))}
        past = stored.get("past_studies")
        return Explanation(
            stored["source"], **figures, past_studies=past if isinstance(past, str) else None
        )
    return Explanation("enqueued" if "fixed_params" in trial.system_attrs else "unknown")


def trial_in(study: Study, trial: FrozenTrial | int) -> FrozenTrial:
    """Return a trial of a study that is given itself or by its number.

    Raises:
        ValueError: If the study has no trial of that number.
    """
    if isinstance(trial, FrozenTrial):
        return trial
    trials = study.get_trials(deepcopy=False)
    for candidate in trials:
        if candidate.number == trial:
            return candidate
    raise ValueError(
        f"trial must be a FrozenTrial or the number of one of the study's {len(trials)} trials, "
        f"got {trial!r}."
    )
