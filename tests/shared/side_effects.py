"""Suggestions in each framework, and what of a process they must leave as it was.

As a program it makes suggestions in all frameworks that are installed, in a process of its own.
"""

import decimal
import gc
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from searches import MakeSearch, OptunaSearch, RaySearch

from dre_plugins.recommend.settings import Settings

N_SUGGESTIONS = 25


def snapshot() -> dict[str, Any]:
    """Return the state of this process that is its user's."""
    loggers = [logging.getLogger(), *map(logging.getLogger, logging.root.manager.loggerDict)]
    kind, key, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return {
        "torch's generator": torch.get_rng_state().tolist(),
        "torch's seed": torch.initial_seed(),
        "torch's dtype": torch.get_default_dtype(),
        # get_default_device raises in torch 2.4 after a change
        "torch's device": torch.empty(0).device,
        "torch's threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch's GPU": torch.cuda.is_initialized(),
        "torch's gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "torch's determinism": (
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            torch.is_anomaly_enabled(),
            torch.backends.mkldnn.enabled,
            torch.backends.cudnn.benchmark,
        ),
        "numpy's generator": (kind, key.tolist(), position, has_gauss, gauss),
        "numpy's errors": (np.geterr(), np.get_printoptions()),
        "random": random.getstate(),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "files": sorted(_open_files()),
        "threads": sorted(str(thread.ident) for thread in threading.enumerate()),
        "children": _children(),
        "warnings": [str(entry) for entry in warnings.filters],
        "log handlers": {log.name: [*log.handlers] for log in loggers if log.handlers},
        "log levels": {log.name: log.level for log in loggers if log.level},
        "signals": {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)},
        "decimals": str(decimal.getcontext()),
        "recursion": sys.getrecursionlimit(),
        "hooks": (sys.excepthook, threading.excepthook, sys.gettrace(), sys.getprofile()),
        "path": [*sys.path],
    }


def _open_files() -> list[str]:
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return []
    found = []
    for name in os.listdir(folder):
        try:
            found.append(f"{name} {os.readlink(f'{folder}/{name}')}")
        except OSError:  # that of the listing itself
            continue
    return found


def _children() -> str:
    path = f"/proc/self/task/{threading.get_native_id()}/children"
    if not os.path.exists(path):
        return ""
    with open(path, encoding="ascii") as file:
        return file.read()


def in_ask_tell(preset: Any) -> int:
    from dre_plugins import AskTell, Prior
    from dre_plugins.space import Float
    from dre_plugins.transfer.meta_training import MetaTrainingSettings
    from dre_plugins.transfer.sources.tables import from_table

    past = from_table({"learning_rate": [0.1, 0.2, 0.3], "loss": [1, 2, 3]}, value="loss")
    trained = Prior.train(past, settings=MetaTrainingSettings(n_steps=2))
    space = {"learning_rate": Float(1e-4, 1.0, "log"), "kind": ["a", "b"]}
    fallbacks = 0
    for prior, n in ((None, N_SUGGESTIONS - 5), (Prior.load("xgboost"), 5), (trained, 1)):
        study = AskTell(space, seed=0, settings=Settings(preset=preset), prior=prior)
        for place in range(n):
            number, configuration = study.ask()
            study.tell(number, None if place == 3 else configuration["learning_rate"])
        fallbacks += study.stats["fallbacks"]
    return fallbacks


def in_search(kind: MakeSearch, preset: Any) -> int:
    search = kind(is_tiny=False, settings=Settings(preset=preset))
    return search.run(N_SUGGESTIONS).stats["fallbacks"]


def in_syne_tune(preset: Any) -> int:
    from datetime import datetime

    from syne_tune.backend.trial_status import Trial
    from syne_tune.config_space import choice, uniform

    from dre_plugins import ASHADRE

    space = {"x": uniform(-1.0, 1.0), "kind": choice(["a", "b"])}
    scheduler = ASHADRE(space, "loss", "epoch", 9, random_seed=0, settings=Settings(preset=preset))
    for number in range(N_SUGGESTIONS):
        trial = Trial(number, scheduler.suggest().config, datetime.now())
        scheduler.on_trial_add(trial)
        scheduler.on_trial_result(trial, {"loss": trial.config["x"], "epoch": 1})
        scheduler.on_trial_complete(trial, {"loss": trial.config["x"], "epoch": 9})
    return scheduler.searcher.stats["fallbacks"]


RUNS: dict[str, tuple[str, Callable[[Any], int]]] = {
    "ask_tell": ("torch", in_ask_tell),
    "optuna": ("optuna", partial(in_search, OptunaSearch)),
    "ray_tune": ("ray.tune", partial(in_search, RaySearch)),
    "syne_tune": ("syne_tune", in_syne_tune),
}

# Parts of torch that take seconds to import, set an environment variable and add a filter.
COMPILER = {"torch._dynamo", "torch._inductor", "sympy"}


def changes(name: str, preset: Any) -> list[str]:
    """Return what suggestions in a framework, which is imported, have changed."""
    modules = {*sys.modules}
    gc.collect()  # else what earlier tests have left open is closed meanwhile
    before = snapshot()
    fallbacks = RUNS[name][1](preset)
    after = snapshot()
    changed = [f"{key}: {after[key]}" for key in after if after[key] != before[key]]
    changed += [f"import of {module}" for module in COMPILER & ({*sys.modules} - modules)]
    return changed + ([f"{fallbacks} fallbacks"] if fallbacks else [])


if __name__ == "__main__":
    from importlib import import_module
    from importlib.util import find_spec

    import scipy.stats  # noqa: F401  # whose import is no matter of ours
    from presets import TINY

    for name, (package, _) in RUNS.items():
        if find_spec(package.partition(".")[0]):
            import_module(package)
            if name == "optuna":
                import optuna

                optuna.logging.set_verbosity(optuna.logging.ERROR)
                optuna.create_study()  # which imports more of it
            print(name, changes(name, TINY), flush=True)
