"""Rebuild the priors that ship with the package, from the YAHPO Gym surrogates.

    python -m dre_bench.priors --data PATH --jobs 2

Metadata are evaluations of the training tasks: random configurations, and the steps of a local
search from the best of them, because a study spends most of its trials near the optimum, where no
random configuration ever is. Validation tasks decide when to stop; test tasks are not touched.

`--mirrored --out FOLDER` builds priors that take the worst for the best, to see whether a study
shakes them off; their files are named after the scenario.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from dre_bench.tasks import Parameter, Scenario, Split, YahpoScenario
from dre_plugins.space import Categorical, Domain, Float, Integer
from dre_plugins.space.candidates import mutate
from dre_plugins.space.conditions import Condition
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import CATALOGUE

N_RANDOM = 1000
N_ROUNDS = 10
N_CHILDREN = 100
N_PARENTS = 20

PRIORS = {
    "xgboost": ("rbv2_xgboost", "XGBoost on OpenML classification data sets, by accuracy"),
    "decision-tree": ("rbv2_rpart", "Decision trees (rpart) on OpenML data sets, by accuracy"),
}
# Values of parameters that a study does not tune.
# XGBoost: https://xgboost.readthedocs.io/en/stable/parameter.html, where `nrounds` has no default;
# 100 is what its scikit-learn interface takes. rpart: ?rpart.control; minbucket is minsplit / 3.
DEFAULTS: Mapping[str, Mapping[str, str | float]] = {
    "xgboost": {
        "booster": "gbtree",
        "nrounds": 100,
        "eta": 0.3,
        "gamma": 0.0,
        "lambda": 1.0,
        "alpha": 0.0,
        "subsample": 1.0,
        "max_depth": 6,
        "min_child_weight": 1.0,
        "colsample_bytree": 1.0,
        "colsample_bylevel": 1.0,
        "rate_drop": 0.0,
        "skip_drop": 0.0,
    },
    "decision-tree": {"cp": 0.01, "maxdepth": 30, "minbucket": 7, "minsplit": 20},
}
SOURCE = "YAHPO Gym (Pfisterer et al., 2022), scenario {}, surrogates of rbv2; training tasks only"
LICENCE = "Apache-2.0"
SPLITS: tuple[Split, Split] = ("train", "validation")


def main(arguments: Sequence[str] | None = None) -> None:
    """Rebuild the priors from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_bench.priors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--out", type=Path, default=CATALOGUE, help="folder of the priors")
    parser.add_argument("--names", default=",".join(PRIORS), help="which priors")
    parser.add_argument("--jobs", type=int, default=1, help="priors that are built at once")
    parser.add_argument("--mirrored", action="store_true", help="learn from minus the values")
    options = parser.parse_args(arguments)
    if options.mirrored and options.out == CATALOGUE:
        parser.error("--mirrored needs --out: such a prior must never ship")
    options.out.mkdir(parents=True, exist_ok=True)
    build_with_options = partial(
        build, data=options.data, out=options.out, mirrored=options.mirrored
    )
    # Spawned, not forked: torch and onnxruntime do not survive a fork with threads.
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for line in pool.map(build_with_options, options.names.split(",")):
            print(line, flush=True)


def build(name: str, data: Path, out: Path, mirrored: bool = False) -> str:
    """Build one prior and return a line about it."""
    scenario_name, description = PRIORS[name]
    scenario = YahpoScenario(data / scenario_name)
    training, validation = (scenario_metadata(scenario, split) for split in SPLITS)
    if mirrored:
        training, validation = _mirrored(training), _mirrored(validation)
    prior = Prior.train(
        training,
        validation=validation,
        name=name,
        description=description,
        defaults=DEFAULTS[name],
        rebuild="python -m dre_bench.priors --data PATH",
        progress=True,
    )
    path = out / f"{scenario_name if mirrored else name}.safetensors"
    prior.save(path)
    return f"{path}: {path.stat().st_size / 1024:.0f} KiB, validation {prior.card.validation}"


def scenario_metadata(scenario: Scenario, split: Split) -> MetaDataset:
    """Evaluate random and locally improved configurations on the tasks of a split."""
    space = search_space(scenario.parameters)
    tasks = [_task(scenario, space, task) for task in scenario.splits[split]]
    return MetaDataset.of(tasks, source=SOURCE.format(scenario.name), licence=LICENCE)


def _mirrored(metadata: MetaDataset) -> MetaDataset:
    return replace(metadata, tasks=tuple(replace(task, values=-task.values) for task in metadata))


def search_space(parameters: Sequence[Parameter]) -> SearchSpace:
    """Return the search space of a scenario."""
    conditions = [
        Condition(parameter.name, parameter.parent, parameter.active_for)
        for parameter in parameters
        if parameter.parent is not None
    ]
    return SearchSpace(
        {parameter.name: _domain(parameter) for parameter in parameters}, conditions
    )


def _domain(parameter: Parameter) -> Domain:
    scale = "log" if parameter.log else "linear"
    if parameter.kind == "categorical":
        return Categorical(parameter.choices)
    if parameter.kind == "int":
        return Integer(int(parameter.low), int(parameter.high), scale)
    return Float(parameter.low, parameter.high, scale)


def _task(scenario: Scenario, space: SearchSpace, task: int) -> Task:
    rng = np.random.default_rng(task)
    units = space.canonical(rng.random((N_RANDOM, space.n_parameters)))
    values = _evaluated(scenario, space, task, units)
    for _ in range(N_ROUNDS):
        best = np.argsort(-values, kind="stable")[:N_PARENTS]
        children = space.canonical(mutate(space, units[best], N_CHILDREN, rng))
        units = np.concatenate([units, children])
        values = np.concatenate([values, _evaluated(scenario, space, task, children)])
    return Task(str(task), space, units, values, np.zeros(len(values), dtype=np.bool_))


def _evaluated(scenario: Scenario, space: SearchSpace, task: int, units: np.ndarray) -> np.ndarray:
    configurations = [space.to_configuration(row) for row in units]
    return scenario.evaluate_many(task, configurations)[scenario.metric]


if __name__ == "__main__":
    main()
