"""A driver that can be killed: syne_tune_worker.py "run" NAME, or "resume" FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from presets import TINY
from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend import LocalBackend
from syne_tune.config_space import choice, loguniform, randint

from dre_plugins.adapters.syne_tune import DRE, load_tuner
from dre_plugins.recommend.settings import Settings

SPACE = {
    "lr": loguniform(1e-4, 1.0),
    "layers": randint(1, 6),
    "act": choice(["relu", "tanh"]),
    "epochs": 1,
    "seconds": 0.4,
}
# More than the first run gets to.
POINTS = [{"lr": 10.0**-k, "layers": 1 + k, "act": "relu"} for k in (1, 2, 3)] + [
    {"lr": 0.5 / k, "layers": 6, "act": "tanh"} for k in (1, 2, 3, 4, 5)
]
N_TRIALS = 10


def new_tuner(name: str) -> Tuner:
    """Return a tuner that saves itself as often as it can."""
    return Tuner(
        trial_backend=LocalBackend(
            str(Path(__file__).parent / "syne_tune_train.py"), rotate_gpus=False
        ),
        scheduler=DRE(
            SPACE,
            "loss",
            random_seed=3,
            points_to_evaluate=POINTS,
            n_startup_trials=4,
            settings=Settings(preset=TINY),
        ),
        # Syne Tune stops after more than so many.
        stop_criterion=StoppingCriterion(max_num_trials_completed=N_TRIALS - 1),
        n_workers=2,
        sleep_time=0.1,
        results_update_interval=0.0,
        tuner_name=name,
        suffix_tuner_name=False,
        max_failures=3,
    )


if __name__ == "__main__":
    job, place = sys.argv[1:]
    (new_tuner(place) if job == "run" else load_tuner(place)).run()
