"""Named suites: what is compared, on what, how long. `dre bench run --suite NAME` runs one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dre_plugins.benchmarks.synthetic import PUBLISHED
from dre_plugins.benchmarks.tasks import SCENARIOS, Split


@dataclass(frozen=True)
class Suite:
    """Say what a benchmark is made of.

    Attributes:
        purpose: What it tells, in a line.
        samplers: Sampler specifications, see ``quality``; the first of ours is what others are
            compared with.
        scenarios: Names of scenarios.
        split: Which tasks of each.
        tasks_per_scenario: How many of them.
        seeds: Repetitions of every task.
        trials: Length of a study.
    """

    purpose: str
    samplers: tuple[str, ...]
    scenarios: tuple[str, ...]
    split: Split = "test"
    tasks_per_scenario: int = 4
    seeds: int = 3
    trials: int = 50

    @property
    def needs_data(self) -> bool:
        """Whether it needs the data of YAHPO Gym."""
        return bool({*self.scenarios} & {*SCENARIOS})


RIVALS = ("random", "tpe", "gp", "dre")
SUITES: Mapping[str, Suite] = {
    "quick": Suite(
        "Synthetic functions, in minutes and without any data.",
        RIVALS,
        ("branin", "hartmann6", "mixed", "branches"),
        tasks_per_scenario=1,
        seeds=2,
        trials=30,
    ),
    "synthetic": Suite(
        "All synthetic functions, two copies of each.",
        RIVALS,
        (*PUBLISHED, "sinusoid", "mixed", "branches"),
        tasks_per_scenario=2,
    ),
    "no-metadata": Suite(
        "Full spaces of real tasks, nothing known beforehand.", RIVALS, SCENARIOS
    ),
    "transfer": Suite(
        "The same with the priors that ship.", (*RIVALS, "dre:prior=shipped"), SCENARIOS
    ),
}


def suite_of(name: str) -> Suite:
    """Return a suite by its name.

    Raises:
        ValueError: If there is none.
    """
    if name not in SUITES:
        raise ValueError(f"unknown suite {name!r}; known: {', '.join(SUITES)}.")
    return SUITES[name]
