"""Run in an environment that has the wheel with one extra: it works, and brings no other."""

from __future__ import annotations

import sys
from importlib.util import find_spec

FRAMEWORKS = {"optuna": "optuna", "ray": "ray", "syne-tune": "syne_tune"}
SEED = 0


def with_optuna() -> dict[str, float]:
    """Suggest with Optuna."""
    import optuna

    from dre_plugins import DRESampler

    study = optuna.create_study(sampler=DRESampler(seed=SEED, n_startup_trials=3))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    return study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)}).params


def with_ray() -> dict[str, float]:
    """Suggest with Ray Tune's domains."""
    from ray import tune

    from dre_plugins import DRESearch

    space = {"x": tune.uniform(0.0, 1.0)}
    search = DRESearch(space, "loss", "min", seed=SEED, n_startup_trials=3)
    for number in range(5):
        config = search.suggest(str(number))
        search.on_trial_complete(str(number), {"loss": config["x"]})
    return search.suggest("next")


def with_syne_tune() -> dict[str, float]:
    """Suggest with Syne Tune's ask and tell."""
    from syne_tune.config_space import uniform
    from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler

    from dre_plugins import DRE

    scheduler = DRE({"x": uniform(0.0, 1.0)}, "loss", random_seed=SEED, n_startup_trials=3)
    study = AskTellScheduler(scheduler)
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, {"loss": trial.config["x"]})
    return study.ask().config


(extra,) = sys.argv[1:]
found = {name for name, package in FRAMEWORKS.items() if find_spec(package)}
assert found == {extra}, f"the extra {extra!r} comes with {sorted(found)}"
suggested = {"optuna": with_optuna, "ray": with_ray, "syne-tune": with_syne_tune}[extra]()
assert 0.0 <= suggested["x"] <= 1.0
print(f"{extra}: alone, and it suggests {suggested}")
