"""What the problems "ray" and "syne-tune" share: real tuners at the defaults of a searcher.

Their trials run one after the other, so that only what is suggested counts. All searchers are
given the same flat search space, because most of them know no conditions: the objective ignores
what is inactive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dre_bench.problems.maximise import reference
from dre_bench.runs import Record, Run, Sources
from dre_bench.samplers import parse_arguments, prior_for
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import active_part

METRIC = "value"
"""Name of what is maximised."""


@dataclass(frozen=True)
class Objective:
    """Evaluate configurations on one task.

    Only names are pickled: each process loads the scenario once.

    Attributes:
        sources: Where data lie; paths must be absolute, because tuners change the folder.
        scenario: Name of the scenario.
        task: Number of the task.
    """

    sources: Sources
    scenario: str
    task: int

    def __call__(self, configuration: Mapping[str, Any]) -> float:
        """Return the value; inactive parameters are ignored."""
        scenario = scenario_of(self.sources, self.scenario)
        return scenario.value(self.task, active_part(scenario.parameters, configuration))


def method_of(run: Run) -> tuple[str, dict[str, Any]]:
    """Return the name of a run's searcher and its keyword arguments.

    Args:
        run: A run with a sampler such as `"dre:prior=shipped"`.
    """
    method, _, arguments = run.sampler.partition(":")
    options = parse_arguments(arguments)
    if "prior" in options:
        options["prior"] = prior_for(run.scenario, options["prior"])
    return method, options


def outcome(
    sources: Sources, run: Run, values: Sequence[float], seconds: Sequence[float]
) -> Record:
    """Return the record of a study: what `problems.maximise` returns, without configurations."""
    return {
        "reference": reference(scenario_of(sources, run.scenario), run.number),
        "values": [*values],
        "ask_seconds": [round(value, 5) for value in seconds],
    }
