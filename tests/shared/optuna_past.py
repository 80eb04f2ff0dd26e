"""Past studies in Optuna, a small preset, and samplers that learn from them."""

from collections.abc import Callable, Sequence

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from optuna_worker import optimized
from presets import NARROW, of_steps

from dre_plugins import DRESampler
from dre_plugins.recommend.settings import Settings

PRESET = of_steps(40, 40, scorer=NARROW)
SPACE = {
    "rate": FloatDistribution(1e-4, 1.0, log=True),
    "depth": IntDistribution(1, 10),
    "kind": CategoricalDistribution(["a", "b", "c"]),
}


def loss_of(rate: float, depth: int, kind: str, shift: float = 0.0) -> float:
    return (np.log10(rate) + 2 + shift) ** 2 + 0.1 * (depth - 7) ** 2 + 2.0 * (kind != "b")


def objective(trial: optuna.Trial) -> float:
    return loss_of(
        trial.suggest_float("rate", 1e-4, 1.0, log=True),
        trial.suggest_int("depth", 1, 10),
        trial.suggest_categorical("kind", ["a", "b", "c"]),
    )


def past_study(
    seed: int,
    space: dict = SPACE,
    *,
    direction: str = "minimize",
    value_of: Callable[[float], float] = float,
    states: Sequence[TrialState] = (TrialState.COMPLETE,),
    n_trials: int = 40,
) -> optuna.Study:
    study = optuna.create_study(study_name=f"past {seed}", direction=direction)
    rng = np.random.default_rng(seed)
    for row in range(n_trials):
        rate, depth, kind = rng.random(3)
        params = {
            "rate": float(10 ** (-4 + 4 * rate)),
            "depth": int(1 + depth * 10),
            "kind": "abc"[int(kind * 3)],
        }
        loss = value_of(loss_of(**params, shift=0.1 * seed))
        shared = {name: value for name, value in params.items() if name in space}
        extra = {
            name: distribution.low for name, distribution in space.items() if name not in params
        }
        state = states[row % len(states)]
        study.add_trial(
            create_trial(
                state=state,
                params={**shared, **extra},
                distributions=space,
                value=loss if state is TrialState.COMPLETE else None,
            )
        )
    return study


def sampler_of(**arguments) -> DRESampler:
    return DRESampler(seed=0, settings=Settings(preset=PRESET), **arguments)


def tuned(sampler: DRESampler, n_trials: int, of=objective) -> optuna.Study:
    return optimized(sampler, of, n_trials)


def source_of(trial: optuna.trial.FrozenTrial) -> str:
    return trial.user_attrs["dre:explanation"]["source"]
