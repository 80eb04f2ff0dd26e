"""Priors of learners: their tasks, their favourites, and what they are compared by."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="favourites are chosen by Gaussian processes of it")

from dre_bench.learner_evaluations.parameters import number
from dre_bench.learner_evaluations.plan import DEFAULT, POSITIONS
from dre_bench.learner_evaluations.tables import Table, read_tables
from dre_bench.learner_priors.__main__ import ELSEWHERE, FIGURES, gains_of, is_worth_shipping
from dre_bench.learner_priors.favourites import N_MEMBERS, complementary, portfolio
from dre_bench.learner_priors.networks import NAME, SPACE, portfolio as portfolio_of_networks, read
from dre_bench.learner_priors.regrets import WORST, regrets_by_metric
from dre_bench.learner_priors.report import Comparison, compared
from dre_bench.learner_priors.studies import Gain
from dre_bench.learner_priors.tasks import (
    LEARNERS,
    defaults_of,
    metadata_of,
    search_space,
    tables_of,
)
from dre_bench.learner_priors.training import dataset_of, validation_of, without_validation
from dre_plugins.transfer.learners import LEARNERS as RECOGNISED
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import names

EVALUATIONS = Path(__file__).parents[1] / "data" / "learner_evaluations" / "evaluations.npz"
DATASETS, TABLES = read_tables(EVALUATIONS)
SHAPE = (number("alpha", 0.0, 1.0, 0.9, log=False), number("l1_ratio", 0.0, 1.0, 0.5, log=False))
N_TOY = 17


def toy(n_datasets: int = 4) -> Table:
    """Return evaluations whose loss is the squared distance to a place near (0.3, 0.7)."""
    rng = np.random.default_rng(0)
    shared = np.vstack([[0.9, 0.5], [0.3, 0.7], rng.random((N_TOY - 2, 2))])
    points = np.tile(shared, (n_datasets, 1))
    optima = np.array([0.3, 0.7]) + rng.normal(0.0, 0.05, (n_datasets, 2))
    losses = np.square(points - np.repeat(optima, N_TOY, axis=0)).sum(axis=1)
    n = len(points)
    values = np.full((n, 4), np.nan)
    values[:, -1] = losses
    return Table(
        SHAPE,
        points,
        np.repeat(np.arange(n_datasets), N_TOY),
        np.tile(np.arange(N_TOY), n_datasets),
        np.zeros(n, dtype=np.uint8),
        {"rmse": values},
        np.zeros((n, 2)),
    )


@pytest.mark.parametrize("name", ["lightgbm", "svm", "logistic-regression", "elastic-net"])
def test_a_task_is_a_data_set_by_a_metric(name: str) -> None:
    metadata = metadata_of(name, DATASETS, TABLES)
    kinds = {task.name.split("/")[0] for task in metadata}
    assert kinds == set(LEARNERS[name].tasks)
    for task in metadata:
        assert "rmse" in task.name or task.name.startswith("classification/")
        assert len(task) and not np.isnan(task.units).all(axis=0).any()
    left_out = {dataset_of(task.name) for task in metadata.tasks[:3]}
    rest = metadata_of(name, DATASETS, TABLES, left_out)
    assert not {dataset_of(task.name) for task in rest} & left_out


def test_larger_is_better_by_every_metric() -> None:
    metadata = metadata_of("random-forest", DATASETS, TABLES)
    by_name = {task.name: task for task in metadata}
    dataset = "classification/vehicle"
    accuracy = by_name[f"{dataset} by accuracy"].values
    log_loss = by_name[f"{dataset} by log_loss"].values
    assert np.corrcoef(accuracy, log_loss)[0, 1] > 0.3
    assert (log_loss <= 0).all()


def test_what_validates_is_not_learnt_from() -> None:
    metadata = metadata_of("svm", DATASETS, TABLES)
    training, validation = without_validation(metadata), validation_of(metadata)
    assert len(training) + len(validation) == len(metadata) and len(validation)
    assert not {dataset_of(t.name) for t in training} & {dataset_of(t.name) for t in validation}


def test_defaults_depend_on_nothing() -> None:
    assert defaults_of("lightgbm", TABLES)["num_leaves"] == 31
    assert "gamma" not in defaults_of("svm", TABLES)  # depends on the data
    assert "max_features" not in defaults_of("random-forest", TABLES)  # and on the task


def test_the_first_member_is_good_on_average_and_the_others_differ() -> None:
    space = search_space(SHAPE)
    members = portfolio(space, [toy()], range(4))
    assert members is not None and len(np.unique(members, axis=0)) == len(members) == N_MEMBERS
    np.testing.assert_allclose(members[0], [0.3, 0.7], atol=1e-3)
    assert portfolio(space, [toy()], [7]) is None


def test_a_default_that_depends_on_the_data_has_its_own_regret_and_usual_values() -> None:
    table = toy()
    is_default = table.position == 0
    table.configurations[is_default, 0] = [0.7, 0.8, 0.9, 1.0]
    table.metrics["rmse"][is_default, -1] = -0.1  # the best on every data set, wherever it is
    members = portfolio(search_space(SHAPE), [table], range(4))
    assert members is not None
    np.testing.assert_allclose(members[0], [0.8, 0.5], atol=1e-3)


def test_members_complement_each_other() -> None:
    regret = np.array([[0.0, 1.0, 0.4, 0.5], [1.0, 0.0, 0.4, 0.5], [1.0, 0.9, 0.4, 0.5]])
    assert complementary(regret, np.ones(3), 3) == [2, 0, 1]
    assert complementary(regret, np.array([0.0, 1.0, 0.0]), 1) == [1]


def test_a_portfolio_of_two_tables_has_the_parameters_of_both() -> None:
    first, second = toy(2), toy(2)
    wider = (*SHAPE[::-1], number("tol", 0.0, 1.0, 0.5, log=False))
    units = np.column_stack([second.configurations[:, ::-1], np.full(len(second.dataset), 0.5)])
    second = replace(second, space=wider, configurations=units)
    space = search_space(wider)
    members = portfolio(space, [first, second], range(2))
    assert members is not None and list(space.names) == ["l1_ratio", "alpha", "tol"]
    np.testing.assert_allclose(members[0, :2], [0.7, 0.3], atol=1e-3)


def test_regrets_are_between_the_best_and_the_worst() -> None:
    table = toy(1)
    table.metrics["rmse"][3, -1] = np.nan
    found = regrets_by_metric(table, np.arange(N_TOY))
    assert found is not None
    assert found.min() == 0.0 and found[3] == WORST
    table.metrics["rmse"][:, -1] = 1.0
    assert regrets_by_metric(table, np.arange(N_TOY)) is None


@pytest.mark.parametrize(("loss", "is_better"), [(0.0, True), (5.0, False), (None, False)])
def test_a_first_trial_is_compared_with_the_default(loss: float | None, is_better: bool) -> None:
    assert POSITIONS[0][0] == DEFAULT
    names_of = [f"regression/{place}" for place in range(4)]
    metrics = {} if loss is None else {"rmse": loss}
    lines = [
        {"dataset": name, "learner": "linear", "place": place, "metrics": found}
        for name in names_of
        for place, found in enumerate((metrics, metrics))
    ]
    found = compared(lines, names_of, {("linear", "regression"): toy()})
    assert found.is_worth_shipping == is_better
    assert found.wins == float(is_better) and found.n_datasets == 4
    assert found.prior == found.best == (0.0 if is_better else WORST)
    assert found.rival <= found.default


def test_what_ships_has_beaten_the_default_or_none() -> None:
    figures = {
        name: Comparison(**found) for name, found in json.loads(FIGURES.read_text()).items()
    }
    gains = gains_of()
    worth = {name for name in figures if is_worth_shipping(figures[name], gains.get(name))}
    assert {*names()} == worth | {*ELSEWHERE}
    for name in worth:
        card = Prior.load(name).card
        assert card.validation["regret of the first trial"] == round(figures[name].prior, 3)
        assert card.n_evaluations > 100 and "learner_priors" in card.rebuild


def test_a_prior_ships_by_first_trials_or_by_studies_unless_these_are_worse() -> None:
    better, worse = (Comparison(9, 0.3, best, 0.5, 0.5, 1.0, 0.1, 0.5) for best in (0.3, 0.45))
    none = dict.fromkeys(("1", "5", "10"), 0.5)

    def gain(first: float, later: float) -> Gain:
        auto = {"1": first, "5": later, "10": later}
        return Gain(6, auto, none, dict.fromkeys(none, 0.1))

    assert is_worth_shipping(better, None) and not is_worth_shipping(worse, None)
    assert is_worth_shipping(worse, gain(0.3, 0.3)) and is_worth_shipping(better, gain(0.9, 0.55))
    assert not is_worth_shipping(worse, gain(0.3, 0.45))
    assert not is_worth_shipping(better, gain(0.3, 0.7))


@pytest.mark.parametrize("name", LEARNERS)
def test_choices_stand_in_one_order_as_coordinates_go_from_tables_to_priors(name: str) -> None:
    domains = Prior.load(name).space.domains
    for table in tables_of(name, TABLES):
        for parameter, domain in search_space(table.space).domains.items():
            assert domain == domains[parameter]


def test_every_learner_can_be_recognised() -> None:
    names = {learner.prior or key for key, learner in RECOGNISED.items()}
    assert {*LEARNERS, NAME} == names


def test_the_prior_of_networks_is_that_of_the_committed_evaluations() -> None:
    metadata, n_shared = read()
    assert len(metadata) == 24 and n_shared < min(len(task) for task in metadata)
    # The odd positions of LCBench, and its validation tasks, are in no file.
    assert not {"3945", "7593"} & {task.name.split(" by ")[0] for task in metadata}
    prior = Prior.load(NAME)
    learnt = metadata.subset({*prior.card.tasks})
    assert prior.space == SPACE and prior.card.n_evaluations == learnt.n_evaluations > 8000
    members = portfolio_of_networks(metadata, n_shared)
    assert prior.portfolio is not None
    np.testing.assert_allclose(prior.portfolio, members, rtol=1e-6)
    np.testing.assert_array_equal(prior.favourites, prior.portfolio[:1])
