"""Schedulers in the real `Tuner` of Syne Tune, on its simulator; see
`problems.tuners`.

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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer import baselines

from dre_bench.problems.tuners import METRIC, Objective, method_of, outcome
from dre_bench.runs import Record, Run, Sources
from dre_bench.samplers import with_settings
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import Parameter

SECONDS = "seconds"
"""Metric that the simulator takes for how long a trial has run."""

BASELINES = {"bore": "BORE", "cqr": "CQR", "botorch": "BOTorch", "kde": "TPE"}
NAMES = ("random", "dre", *BASELINES)

Curve: TypeAlias = Callable[[dict[str, Any]], ArrayLike]
"""All that a configuration reports: a row for each step, a column for each metric."""


def tune_task(sources: Sources, run: Run) -> Record:
    """Run a `Tuner` with one worker.

    Args:
        sources: Where data lie.
        run: Which task, scheduler, seed and number of trials.

    Returns:
        What `tuners.outcome` returns.

    Raises:
        ValueError: There is no such scheduler.
        RuntimeError: The scheduler ended early.
    """
    silence()
    method, options = method_of(run)
    space = config_space(scenario_of(sources, run.scenario).parameters)
    evaluate = Objective(sources, run.scenario, run.number)
    scheduler = make_scheduler(method, space, run.sampler_seed, **options)
    seconds: list[float] = []
    scheduler.suggest = _timed(scheduler.suggest, seconds)
    callback = SimulatorCallback()
    run_tuner(
        # Every trial lasts a simulated second.
        simulator(space, lambda configuration: [[evaluate(configuration), 1.0]]),
        scheduler,
        callback,
        # It stops when there are more than these.
        stop_criterion=StoppingCriterion(max_num_trials_started=run.trials - 1),
        wait_trial_completion_when_stopping=True,
    )
    results = sorted(callback.results, key=lambda result: int(result["trial_id"]))
    if len(results) != run.trials:
        raise RuntimeError(f"{len(results)} results of {run.trials} trials.")
    return outcome(sources, run, [float(result[METRIC]) for result in results], seconds)


def silence() -> None:
    """Have Syne Tune log errors only."""
    logging.getLogger("syne_tune").setLevel(logging.ERROR)


def config_space(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return Syne Tune's domains by name, as if all parameters were always active."""
    return {parameter.name: _domain(parameter) for parameter in parameters}


def make_scheduler(method: str, space: dict[str, Any], seed: int, **options: Any) -> Any:
    """Build a scheduler of single trials at its defaults, to maximise `METRIC`.

    Raises:
        ValueError: There is none of this name.
    """
    common = {"do_minimize": False, "random_seed": seed, **options}
    if method == "random":
        return baselines.RandomSearch(space, metrics=[METRIC], **common)
    if method == "dre":
        from dre_plugins.adapters.syne_tune import DRE

        return DRE(space, metric=METRIC, **with_settings(common))
    if method not in BASELINES:
        raise ValueError(f"unknown sampler {method!r}; known: {', '.join(NAMES)}.")
    return getattr(baselines, BASELINES[method])(space, metric=METRIC, **common)


def simulator(
    space: dict[str, Any],
    curve: Curve,
    *,
    metrics: Sequence[str] = (METRIC, SECONDS),
    resource: str = "step",
    levels: Sequence[int] = (1,),
    **options: Any,
) -> Any:
    """Return a backend whose trials report at all levels, and end.

    Args:
        space: Syne Tune's domains by name.
        curve: Metrics of a configuration `[levels, metrics]`.
        metrics: Their names; `SECONDS` is the time since the trial began.
        resource: What the levels are called in a report.
        levels: Levels of the resource, ascending.
        options: Arguments of Syne Tune's `SimulatorBackend`.
    """
    from syne_tune.blackbox_repository import UserBlackboxBackend
    from syne_tune.blackbox_repository.blackbox import Blackbox

    class Task(Blackbox):  # type: ignore[misc] # Syne Tune has no types
        fidelity_values: NDArray[np.int64] = np.array(levels)

        def objective_function(
            self, configuration: dict[str, Any], fidelity: Any = None, seed: int | None = None
        ) -> NDArray[np.float64]:
            return np.asarray(curve(configuration))

    task = Task(space, {resource: randint(levels[0], levels[-1])}, [*metrics])
    return UserBlackboxBackend(task, elapsed_time_attr=SECONDS, **options)


def run_tuner(backend: Any, scheduler: Any, callback: SimulatorCallback, **options: Any) -> None:
    """Run a `Tuner` with one worker, which prints nothing and leaves no files.

    Args:
        backend: A simulator.
        scheduler: Any scheduler.
        callback: Holds what the scheduler was told, in that order, also while the tuner runs.
        options: Further arguments of `Tuner`.
    """
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        tuner = Tuner(
            trial_backend=backend,
            scheduler=scheduler,
            n_workers=1,
            sleep_time=0,  # real time; the simulator has its own
            callbacks=[callback],
            save_tuner=False,
            trial_backend_path=folder,
            **options,
        )
        tuner.tuner_path = Path(folder)
        tuner.run()


def _domain(parameter: Parameter) -> Any:
    if parameter.kind == "categorical":
        return choice(list(parameter.choices))
    if parameter.kind == "float":
        float_domain = loguniform if parameter.log else uniform
        return float_domain(parameter.low, parameter.high)
    integer_domain = lograndint if parameter.log else randint  # both ends are included
    return integer_domain(int(parameter.low), int(parameter.high))


def _timed(suggest: Callable[[], Any], seconds: list[float]) -> Callable[[], Any]:
    def timed() -> Any:
        start = time.perf_counter()
        suggestion = suggest()
        seconds.append(time.perf_counter() - start)
        return suggestion

    return timed
