"""A driver of Syne Tune that tests kill at any moment, forked from a server of imports."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from presets import TINY
from syne_tune import StoppingCriterion
from syne_tune.backend import LocalBackend
from syne_tune.config_space import choice, loguniform, randint
from syne_tune.constants import ST_TUNER_DILL_FILENAME
from syne_tune.results_callback import StoreResultsCallback
from syne_tune.tuner_callback import TunerCallback

from dre_plugins.adapters.syne_tune import DRE, DurableTuner, load_tuner
from dre_plugins.engine import surrogate  # noqa: F401  # imported before drivers are forked
from dre_plugins.recommend.settings import Settings

SPACE = {"lr": loguniform(1e-4, 1.0), "layers": randint(1, 6), "act": choice(["relu", "tanh"])}
N_AT_ONCE = 2


def new_tuner(
    name: str, n_trials: int, callbacks: Sequence[TunerCallback] = (), **arguments: Any
) -> DurableTuner:
    """Return a tuner that saves itself as often as it can; arguments are those of `DRE`."""
    return DurableTuner(
        trial_backend=LocalBackend(
            str(Path(__file__).with_name("syne_tune_train.py")), rotate_gpus=False
        ),
        scheduler=DRE(
            SPACE,
            "loss",
            **{
                "random_seed": 3,
                "n_startup_trials": 4,
                "settings": Settings(preset=TINY),
                **arguments,
            },
        ),
        # Syne Tune stops after more than so many.
        stop_criterion=StoppingCriterion(max_num_trials_finished=n_trials - 1),
        n_workers=N_AT_ONCE,
        sleep_time=0.05,
        results_update_interval=-1.0,  # Syne Tune counts whole seconds; 0 would be one
        max_failures=99,
        tuner_name=name,
        suffix_tuner_name=False,
        callbacks=[StoreResultsCallback(), *callbacks],
    )


def drive(folder: str, n_trials: int) -> None:
    """Begin an experiment or go on with it, to its end."""
    experiment = Path(folder, "study")
    os.environ.update(SYNETUNE_FOLDER=folder, LEDGER=f"{folder}/ledger")
    if (experiment / ST_TUNER_DILL_FILENAME).exists():
        load_tuner(experiment).run()
    else:
        # One that was killed before it was saved: a new one would read its reports as its own.
        shutil.rmtree(experiment, ignore_errors=True)
        new_tuner("study", n_trials).run()
