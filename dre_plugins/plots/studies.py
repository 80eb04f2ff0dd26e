"""The studies that pictures are drawn of: those of Optuna, and `AskTell`.

An `AskTell` needs no Optuna, which is therefore imported for its studies only.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.settings import require
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.histories import StudyHistory, best_values, chosen_objective
from dre_plugins.recommend.trials import TrialState

if TYPE_CHECKING:
    from dre_plugins.adapters.optuna import inspection

Study: TypeAlias = "AskTell | inspection.Study"


def direction_of(study: Study) -> str:
    """Return "minimize" or "maximize".

    Raises:
        ValueError: If the study has several objectives.
    """
    n = len(study.directions)
    require(n == 1, "the number of objectives", n, "1")
    direction = study.directions[0]
    return direction if isinstance(direction, str) else direction.name.lower()


def history_of(study: Study, objective: int | None = None) -> StudyHistory:
    """Return the trials of a study that have begun.

    Args:
        objective: Which one, from 0; may be None if there is one only.

    Raises:
        ValueError: If the study has several objectives and none is chosen, or has no such one.
    """
    chosen = chosen_objective(len(study.directions), objective)
    if isinstance(study, AskTell):
        history = study.history()
        return StudyHistory.of(study.space, history, range(len(history)), chosen)
    from dre_plugins.adapters.optuna.inspection import begun_in

    return StudyHistory.of(*begun_in(study), chosen)


def best_so_far(study: Study) -> NDArray[np.float64]:
    """Return the best feasible value after each trial that has ended `[N]`; larger is better.

    Before the first one it is −inf.

    Raises:
        ValueError: If the study has several objectives.
    """
    chosen_objective(len(study.directions), None)
    if isinstance(study, AskTell):
        has_ended = [trial.state is not TrialState.RUNNING for trial in study.trials]
        return best_values([*compress(study.history(), has_ended)])
    from dre_plugins.adapters.optuna.inspection import ended_in

    return best_values(ended_in(study))


def explanations_of(study: Study) -> Mapping[int, Explanation]:
    """Return the explanation of every trial that has begun, by number."""
    if isinstance(study, AskTell):
        return {number: study.explain(number) for number in range(len(study.trials))}
    from dre_plugins.adapters.optuna import inspection

    return inspection.explanations_of(study)
