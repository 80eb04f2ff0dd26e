"""Schedulers in the real `Tuner` of Syne Tune, on its simulator: a part of `framework_quality`.

The simulator's blackboxes need `pip install huggingface_hub`, and so does CQR. Syne Tune's own
searchers draw random configurations from NumPy's global generator, whatever their `random_seed`
says: their runs cannot be repeated exactly.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer import baselines

from dre_plugins.benchmarks.framework_quality import METRIC, Evaluate, method_of
from dre_plugins.benchmarks.quality import Run
from dre_plugins.benchmarks.tasks import Parameter

SECONDS = "seconds"
"""Metric that the simulator takes for how long a trial has run."""

BASELINES = {
    "bore": "BORE",
    "cqr": "CQR",
    "botorch": "BOTorch",
    "kde": "TPE",
}


def tune_task(
    parameters: Sequence[Parameter], evaluate: Evaluate, run: Run
) -> tuple[list[float], list[float]]:
    """Run a `Tuner` with one worker.

    Args:
        parameters: Search space of the task.
        evaluate: Accuracy of a configuration.
        run: Which scheduler, its seed and the number of trials.

    Returns:
        Value and seconds spent on suggesting parameters, for every trial.

    Raises:
        RuntimeError: The scheduler ended early.
    """
    logging.getLogger("syne_tune").setLevel(logging.ERROR)
    method, options = method_of(run)
    space = config_space(parameters)
    scheduler = make_scheduler(method, space, run.sampler_seed, **options)
    seconds: list[float] = []
    scheduler.suggest = _timed(scheduler.suggest, seconds)
    callback = SimulatorCallback()
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        tuner = Tuner(
            trial_backend=_simulator(space, evaluate),
            scheduler=scheduler,
            # It stops when there are more than these.
            stop_criterion=StoppingCriterion(max_num_trials_started=run.trials - 1),
            wait_trial_completion_when_stopping=True,
            n_workers=1,
            sleep_time=0,  # real time; the simulator has its own
            callbacks=[callback],
            save_tuner=False,
            trial_backend_path=folder,
        )
        tuner.tuner_path = Path(folder)
        tuner.run()
    results = sorted(callback.results, key=lambda result: int(result["trial_id"]))
    if len(results) != run.trials:
        raise RuntimeError(f"{len(results)} results of {run.trials} trials.")
    return [float(result[METRIC]) for result in results], seconds


def config_space(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return Syne Tune's domains by name, as if all parameters were always active."""
    return {one.name: _domain(one) for one in parameters}


def make_scheduler(method: str, space: dict[str, Any], seed: int, **options: Any) -> Any:
    """Build a scheduler of single trials at its defaults, to maximise `METRIC`."""
    common = {"do_minimize": False, "random_seed": seed, **options}
    if method == "random":
        return baselines.RandomSearch(space, metrics=[METRIC], **common)
    if method == "dre":
        from dre_plugins.adapters.syne_tune import DRE

        return DRE(space, metric=METRIC, **common)
    return getattr(baselines, BASELINES[method])(space, metric=METRIC, **common)


def _domain(parameter: Parameter) -> Any:
    if parameter.kind == "categorical":
        return choice(list(parameter.choices))
    if parameter.kind == "float":
        float_domain = loguniform if parameter.log else uniform
        return float_domain(parameter.low, parameter.high)
    integer_domain = lograndint if parameter.log else randint  # both ends are included
    return integer_domain(int(parameter.low), int(parameter.high))


def _simulator(space: dict[str, Any], evaluate: Evaluate) -> Any:
    """Return a backend whose trials last a simulated second."""
    from syne_tune.blackbox_repository import UserBlackboxBackend
    from syne_tune.blackbox_repository.blackbox import Blackbox

    class Task(Blackbox):  # type: ignore[misc] # Syne Tune has no types
        """One step, at which a trial ends."""

        fidelity_values: NDArray[np.int64] = np.array([1])

        def objective_function(
            self, configuration: dict[str, Any], fidelity: Any = None, seed: int | None = None
        ) -> NDArray[np.float64]:
            return np.array([[evaluate(configuration), 1.0]])

    task = Task(space, {"step": randint(1, 1)}, [METRIC, SECONDS])
    return UserBlackboxBackend(task, elapsed_time_attr=SECONDS)


def _timed(suggest: Callable[[], Any], seconds: list[float]) -> Callable[[], Any]:
    def timed() -> Any:
        start = time.perf_counter()
        suggestion = suggest()
        seconds.append(time.perf_counter() - start)
        return suggestion

    return timed
