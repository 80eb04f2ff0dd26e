"""Searchers in the real `Tuner` of Ray Tune; see `problems.tuners`."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray import tune
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter, Searcher

from dre_bench.names import entry_of
from dre_bench.problems.tuners import METRIC, Objective, method_of, outcome
from dre_bench.runs import Record, Run, Sources
from dre_bench.samplers import with_settings
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import Parameter

SECONDS = "suggest_seconds"
"""Entry of a configuration: how long the searcher took for it."""


def tune_task(sources: Sources, run: Run) -> Record:
    """Run a `Tuner` with one trial at a time.

    Args:
        sources: Where data lie.
        run: Which task, searcher, seed and number of trials.

    Returns:
        What `tuners.outcome` returns. Ray draws random configurations itself; that is not timed.

    Raises:
        ValueError: There is no such searcher.
        RuntimeError: A trial failed, or the searcher ended early.
    """
    method, options = method_of(run)
    searcher = entry_of(SEARCHERS, "sampler", method)
    parameters = scenario_of(sources, run.scenario).parameters
    search_alg, space = searcher(parameters, run.sampler_seed, **options)
    evaluate = Objective(sources, run.scenario, run.number)

    def train(config: dict[str, Any]) -> dict[str, float]:
        return {METRIC: evaluate(config)}

    logging.getLogger("optuna").setLevel(logging.ERROR)
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()), _cluster():
        results = tune.Tuner(
            train,
            param_space=space,
            tune_config=tune.TuneConfig(
                metric=METRIC,
                mode="max",
                search_alg=search_alg,
                num_samples=run.trials,
                reuse_actors=True,  # a new process for each trial would take seconds
            ),
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        ).fit()
        if results.num_errors or len(results) < run.trials:
            raise RuntimeError(f"{len(results)} trials, {results.num_errors} of them failed.")
        metrics = [results[i].metrics or {} for i in range(run.trials)]
    values = [reported[METRIC] for reported in metrics]
    return outcome(
        sources, run, values, [reported["config"].get(SECONDS, 0.0) for reported in metrics]
    )


def param_space(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return Ray's domains by name, as if all parameters were always active."""
    return {parameter.name: _domain(parameter) for parameter in parameters}


class _Timed:
    """A searcher that leaves the seconds that it took in the configuration.

    There they survive that Tune copies the searcher.
    """

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        start = time.perf_counter()
        suggestion: dict[str, Any] | str | None
        suggestion = super().suggest(trial_id)  # type: ignore[misc] # of the searcher beside it
        if isinstance(suggestion, dict):
            return {**suggestion, SECONDS: time.perf_counter() - start}
        return suggestion


def _training_lock(searcher: type[Searcher], **arguments: Any) -> ConcurrencyLimiter:
    timed = type(f"Timed{searcher.__name__}", (_Timed, searcher), {})
    return ConcurrencyLimiter(timed(**arguments), max_concurrent=1)


def _random(parameters: Sequence[Parameter], seed: int) -> tuple[Any, dict[str, Any]]:
    return BasicVariantGenerator(max_concurrent=1, random_state=seed), param_space(parameters)


def _optuna(parameters: Sequence[Parameter], seed: int) -> tuple[Any, dict[str, Any]]:
    from ray.tune.search.optuna import OptunaSearch

    return _training_lock(OptunaSearch, seed=seed), param_space(parameters)


def _hyperopt(parameters: Sequence[Parameter], seed: int) -> tuple[Any, dict[str, Any]]:
    from ray.tune.search.hyperopt import HyperOptSearch

    return _training_lock(HyperOptSearch, random_state_seed=seed), param_space(parameters)


def _dre(parameters: Sequence[Parameter], seed: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    from dre_plugins.adapters.ray_tune import DRESearch

    search = _training_lock(DRESearch, seed=seed, **with_settings(options))
    return search, param_space(parameters)


# Each returns the search algorithm and the search space that the Tuner is given.
SEARCHERS: dict[str, Callable[..., tuple[Any, dict[str, Any]]]] = {
    "random": _random,
    "optuna": _optuna,
    "hyperopt": _hyperopt,
    "dre": _dre,
}


def _domain(parameter: Parameter) -> Any:
    low, high = parameter.low, parameter.high
    if parameter.kind == "categorical":
        return tune.choice(list(parameter.choices))
    if parameter.kind == "float":
        return tune.loguniform(low, high) if parameter.log else tune.uniform(low, high)
    bounds = int(low), int(high) + 1  # Ray leaves out the upper end
    return tune.lograndint(*bounds) if parameter.log else tune.randint(*bounds)


@contextmanager
def _cluster() -> Iterator[None]:
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"  # they write files that nobody reads
    ray.init(
        "local",
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        yield
    finally:
        ray.shutdown()
