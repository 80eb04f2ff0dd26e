"""Which trial of an experiment of Ray Tune to use, where values are noisy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ray.tune import Result, ResultGrid

from dre_plugins.adapters.common.past_tasks import SIGNS, Mode, check_mode
from dre_plugins.adapters.ray_tune.conversion import space_of
from dre_plugins.adapters.ray_tune.sources import last_iteration, run_of_result, trial_of
from dre_plugins.engine.settings import require
from dre_plugins.recommend.limits import Limits
from dre_plugins.recommend.recommendation import Recommendation, recommended
from dre_plugins.transfer.spaces.inference import flat_configuration, infer_space


def recommend(
    results: ResultGrid,
    metric: str,
    mode: Mode,
    *,
    space: Mapping[str, Any] | None = None,
    constraints: Mapping[str, Any] | None = None,
) -> Recommendation[Result]:
    """Return the result that is best by the model, not the luckiest one.

    `results.get_best_result` has the best observed value, which noise favoured. Here the universal
    prior reads the last values of all trials, and the complete one with the best expected value is
    returned, with that expectation and its doubt. Trials that were stopped early and those that
    failed are learnt from and not recommended. The search algorithm may be any.

    Args:
        results: What `Tuner.fit` has returned.
        metric: Name of the metric, with "/" between nested keys.
        mode: "min" or "max".
        space: The `param_space` of the Tuner; None infers it from the configurations.
        constraints: Limits on other metrics, see `DRESearch`; trials that break one are not
            recommended.

    Raises:
        ValueError: If no trial is complete and feasible, or an argument is wrong.
    """
    check_mode(mode)
    runs = [run_of_result(results[place]) for place in range(len(results))]
    ended = [place for place, run in enumerate(runs) if run.has_ended]
    reported = {name for run in runs for report in run.reports for name in report}
    require(metric in reported, "metric", metric, f"one of those reported, {sorted(reported)}")
    limits = Limits.of(constraints)
    given = None if space is None else space_of(space)
    names = () if given is None else given.names
    longest = max((last_iteration(runs[place]) for place in ended), default=0.0)
    history = []
    for place in ended:
        run = runs[place]
        configuration = flat_configuration(run.configuration, names)
        trial = trial_of(run, configuration, metric, SIGNS[mode], longest)
        violations = limits.violations(run.reports[-1] if run.reports else {})
        history.append(replace(trial, constraints=violations))
    searched = given or infer_space([trial.configuration for trial in history])
    chosen = recommended(searched, history)
    return chosen.as_of(results[ended[chosen.position]], SIGNS[mode])
