"""Named suites: what is compared, on what, how long. `dre-bench run --suite NAME` runs one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dre_bench.conditional import CONDITIONAL, LEARNER_CHOICE, PIPELINES
from dre_bench.learners import LEARNERS
from dre_bench.problems.ablations import DEFAULT, GROUPS
from dre_bench.problems.catalogue import RIVALS
from dre_bench.runs import MAXIMISE
from dre_bench.synthetic import PUBLISHED
from dre_bench.tasks import SCENARIOS, Split

ALL = 1000
"""More tasks than any scenario has."""


@dataclass(frozen=True)
class Suite:
    """Say what a benchmark is made of.

    Attributes:
        purpose: What it tells, in a line.
        scenarios: Names of scenarios, or of tables.
        problems: Names of problems, see ``problems.catalogue``.
        samplers: Sampler specifications; None takes each problem's.
        split: Which tasks of each scenario.
        tasks_per_scenario: How many of them.
        seeds: Repetitions of every task.
        trials: Length of a study; None takes each problem's.
    """

    purpose: str
    scenarios: tuple[str, ...] = SCENARIOS
    problems: tuple[str, ...] = (MAXIMISE,)
    samplers: tuple[str, ...] | None = None
    split: Split = "test"
    tasks_per_scenario: int = 4
    seeds: int = 3
    trials: int | None = None

    @property
    def needs(self) -> str:
        """What data it needs, as the option that names their folder."""
        if any(name.startswith("hpob") for name in self.scenarios):
            return "--hpob"
        needs_data = {*SCENARIOS, LEARNER_CHOICE, PIPELINES}
        return "--data" if {*self.scenarios} & needs_data else ""


def _ablation(group: str) -> Suite:
    variants = (DEFAULT, *GROUPS[group])
    return Suite(
        f"An ablation of the paper on tables: {group}.",
        problems=("table",),
        samplers=tuple(f"ablation:{name}" for name in variants),
        tasks_per_scenario=ALL,
        seeds=1,
    )


SUITES: Mapping[str, Suite] = {
    "quick": Suite(
        "Synthetic functions, in minutes and without any data.",
        ("branin", "hartmann6", "mixed", "branches"),
        tasks_per_scenario=1,
        seeds=2,
        trials=30,
    ),
    "synthetic": Suite(
        "All synthetic functions, two copies of each.",
        (*PUBLISHED, "sinusoid", "mixed", "branches"),
        tasks_per_scenario=2,
    ),
    "learners": Suite(
        "Learners of scikit-learn on small data, nothing known beforehand.",
        (*LEARNERS,),
        tasks_per_scenario=1,
    ),
    "search-quality": Suite(
        "All full spaces that there are, 100 trials: hours on many cores.",
        (*SCENARIOS, *PUBLISHED, "mixed", "branches", *LEARNERS),
        tasks_per_scenario=ALL,
        trials=100,
    ),
    "conditional": Suite(
        "Choices that open branches with parameters of their own, 60 trials.",
        CONDITIONAL,
        samplers=("random", "tpe", "tpe:multivariate=True,group=True", "dre"),
        tasks_per_scenario=12,
        seeds=2,
        trials=60,
    ),
    "no-metadata": Suite("Full spaces of real tasks, nothing known beforehand."),
    "transfer": Suite(
        "The same with the priors that ship.", samplers=(*RIVALS, "dre:prior=shipped")
    ),
    "real-studies": Suite(
        "Constraints, crashes, several objectives, several fidelities, many workers.",
        problems=(
            *("constrained-10", "constrained-50", "constrained-90", "crash"),
            *("pareto-timetrain", "pareto-memory", "asha", "asha-syne-tune"),
            *("async-8", "async-1"),
        ),
        tasks_per_scenario=3,
    ),
    "ray": Suite("Searchers of Ray Tune in its tuner.", problems=("ray",), seeds=2),
    "syne-tune": Suite("Schedulers of Syne Tune in its tuner.", problems=("syne-tune",), seeds=2),
    "rivals": Suite(
        "The paper's rivals that learn nothing from past tasks, on tables.",
        problems=("table",),
        samplers=("random", "gp", "deep-ensemble:n_members=10", "dkgp", "dre"),
        tasks_per_scenario=ALL,
        seeds=1,
    ),
    "transfer-rivals": Suite(
        "The paper's rivals that learn from past tasks, on tables.",
        problems=("table",),
        samplers=("fsbo", "rgpe", "tst", "taf", "dre:prior=trained"),
        tasks_per_scenario=ALL,
        seeds=1,
    ),
    "hpob": Suite(
        "HPO-B: 16 search spaces, 86 data sets, 5 initialisations, 100 steps.",
        ("hpob",),
        problems=("table",),
        samplers=("random", "dre", "dre:prior=trained"),
        tasks_per_scenario=ALL,
        seeds=5,
        trials=105,
    ),
    **{f"ablation-{group}": _ablation(group) for group in GROUPS},
}
