"""The priors that ship are good on tasks that they have never seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from dre_bench.gate import EXTRACT
from dre_bench.samplers import SHIPPED_PRIORS
from dre_bench.tasks import TaskSample, load_extract
from dre_plugins import Prior
from dre_plugins.engine import PRESETS
from dre_plugins.recommend.members import Members, Mixture

SCENARIOS = {name: scenario for scenario, name in SHIPPED_PRIORS.items()}


def samples_of(name: str) -> list[TaskSample]:
    return [sample for sample in load_extract(EXTRACT) if sample.scenario == SCENARIOS[name]]


def configurations_of(sample: TaskSample) -> list[dict[str, Any]]:
    rows = []
    for row in sample.values.tolist():
        present = {
            p: value for p, value in zip(sample.parameters, row, strict=True) if value == value
        }
        rows.append(
            {
                p: sample.choices[p][int(v)] if p in sample.choices else v
                for p, v in present.items()
            }
        )
    return rows


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_shipped_prior_has_not_seen_the_test_tasks(name):
    assert not {str(sample.task) for sample in samples_of(name)} & set(Prior.load(name).card.tasks)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_shipped_prior_ranks_configurations_of_new_tasks(name):
    prior = Prior.load(name)
    part = Members(prior.ensemble, prior.space.features, PRESETS["default"].from_prior)
    agreements, places = [], []
    for sample in samples_of(name):
        units = prior.space.to_units(configurations_of(sample))
        ranks = Mixture([part], units).ranks(units).mean(0).numpy()
        accuracy = sample.outputs["acc"]
        agreements.append(spearmanr(-ranks, accuracy).statistic)
        places.append((accuracy > accuracy[ranks.argmin()]).mean())
    assert np.mean(agreements) > 0.4
    assert np.mean(np.array(places) < 0.5) >= 0.75
    assert np.median(places) < 0.1
