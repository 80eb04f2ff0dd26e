"""Priors: trained on metadata of any spaces, used on any space."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_priors import (
    DEFAULTS,
    DOMAINS,
    DROPS,
    QUICK,
    SPACE,
    metadata,
    of_a_formula,
    scores,
    small,
    task,
)
from small_spaces import drawn

from dre_plugins.engine import FittingSettings
from dre_plugins.engine.surrogate import RankingLists
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Constant, Float, Integer, SearchSpace
from dre_plugins.transfer import training
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.spaces.merging import in_canonical_order
from dre_plugins.transfer.training import held_out

# The same space, listed in another order.
TURNED = SearchSpace(
    {
        "rate_drop": DOMAINS["rate_drop"],
        "booster": Categorical(("dart", "tree", "linear")),
        "max_depth": DOMAINS["max_depth"],
        "learning_rate": DOMAINS["learning_rate"],
    },
    [DROPS],
)


def encoded(space: SearchSpace, configurations: list[dict]) -> np.ndarray:
    return space.canonical(space.to_units(configurations))


@pytest.fixture(scope="module")
def prior() -> Prior:
    return of_a_formula()


# ---- training


def test_a_favourite_of_a_task_is_a_trial_that_did_not_fail() -> None:
    space = SearchSpace({"x": Float(0.0, 1.0)})
    values, failed = np.array([np.nan, -np.inf]), np.array([True, False])
    unlucky = Task("unlucky", space, np.array([[0.2], [0.7]]), values, failed)
    favourites = training.favourites_of(MetaDataset.of([unlucky], source="tests"), space)
    np.testing.assert_array_equal(favourites, [[0.7]])


def test_the_card_says_where_a_prior_comes_from(prior) -> None:
    card = prior.card
    described = card.name, card.description, card.rebuild
    assert described == ("formula", "One formula.", "make formula")
    assert card.tasks == ("task 0", "task 1", "task 2")
    assert (card.n_evaluations, card.source, card.licence) == (90, "a formula", "CC0-1.0")
    assert card.defaults == DEFAULTS
    assert card.training["seed"] == 0 and card.training["n_steps"] == 30
    assert card.validation["n_tasks"] == 0 and card.validation["steps"] == 30
    assert math.isfinite(card.validation["loss"])
    assert prior.space == in_canonical_order(SPACE)
    assert small(metadata(), space=SPACE).space == SPACE


def test_every_fifth_of_many_tasks_decides_when_to_stop() -> None:
    few = metadata(9)
    assert held_out(few)[0].tasks == few.tasks and not len(held_out(few)[1])
    lessons, validation = held_out(metadata(11))
    assert [task.name for task in validation] == ["task 4", "task 9"]
    assert len(lessons) == 9
    assert small(metadata(11)).card.validation["n_tasks"] == 2


def test_other_tasks_can_be_given_for_validation() -> None:
    others = MetaDataset.of([task("other", 7)])
    found = small(metadata(10), validation=others).card
    assert found.validation["n_tasks"] == 1
    assert (found.training["n_task_lists"], found.training["n_lists"]) == (10, QUICK.n_lists)


def test_spaces_of_tasks_may_differ() -> None:
    without_booster = SearchSpace({name: DOMAINS[name] for name in ("max_depth", "learning_rate")})
    wider = SearchSpace(
        {
            "learning_rate": Float(1e-6, 0.1, "log"),
            "max_depth": Integer(4, 20),
            "booster": Categorical(("dart", "forest")),
            "subsample": Float(0.5, 1.0),
        }
    )
    tasks = [task("a"), task("b", space=without_booster), task("c", space=wider)]
    found = small(MetaDataset.of(tasks))
    domains = found.space.domains
    assert set(domains) == {*DOMAINS, "subsample"}
    assert (domains["learning_rate"].low, domains["learning_rate"].high) == (1e-6, 1.0)
    assert (domains["max_depth"].low, domains["max_depth"].high) == (1, 20)
    assert set(domains["booster"].choices) == {"tree", "linear", "dart", "forest"}
    for space in (SPACE, without_booster, wider):
        assert torch.isfinite(scores(found, space, drawn(space))).all()


def test_order_of_what_past_tasks_list_does_not_count(prior) -> None:
    tasks = []
    for past in metadata():
        units = encoded(TURNED, [SPACE.to_configuration(row) for row in past.units])
        tasks.append(replace(past, space=TURNED, units=units))
    turned = small(MetaDataset.of(tasks))
    assert turned.space == prior.space
    for name, value in prior.ensemble.parameters.items():
        assert torch.equal(value, turned.ensemble.parameters[name])


def test_metadata_that_teach_nothing_and_a_wrong_seed_are_refused() -> None:
    with pytest.raises(ValueError, match="seed must be a non-negative integer, got -1"):
        small(metadata(), seed=-1)
    with pytest.raises(ValueError, match=r"no task.*left out.*'empty study': 2"):
        small(MetaDataset.of([task("a", n=0), task("b", n=0)]))
    with pytest.raises(ValueError, match="no task with parameters"):
        small(MetaDataset.of([of_constants()]))
    with pytest.raises(ValueError, match=r"Task 'a' has none of the parameters \['q'\], but \['"):
        small(MetaDataset.of([task("a")]), space=SearchSpace({"q": Float(0, 1)}))


def of_constants() -> Task:
    """A task that has searched nothing, as a study of one fixed configuration."""
    trials = [Trial({"max_depth": 3}, TrialState.COMPLETE, float(value)) for value in range(4)]
    return Task.from_trials("constants", SearchSpace({"max_depth": Constant(3)}), trials)


def test_tasks_without_parameters_are_left_out(prior) -> None:
    found = small(metadata() + MetaDataset((of_constants(),)))
    assert found.card.tasks == prior.card.tasks and found.space == prior.space
    with_them = MetaDataset((of_constants(), task("other", 7)))
    assert small(metadata(), validation=with_them).card.validation["n_tasks"] == 1


def test_tasks_that_teach_nothing_are_not_held_out() -> None:
    dull = [replace(task(f"dull {i}"), values=np.zeros(30)) for i in range(2)]
    good = [task(f"good {i}", i) for i in range(10)]
    tasks = [*good[:4], dull[0], *good[4:8], dull[1], *good[8:]]
    data = MetaDataset.of(tasks)
    assert [task.name for task in held_out(data)[1]] == ["good 4", "good 9"]
    assert len(held_out(data)[0]) == 10
    card = small(data).card
    assert (card.validation["n_tasks"], card.training["n_task_lists"]) == (2, 8)


# ---- other spaces


def test_on_its_own_space_a_prior_is_its_ensemble(prior) -> None:
    equal = in_canonical_order(SPACE)
    units = drawn(equal, 200)
    expected = prior.ensemble.scores(torch.from_numpy(prior.space.features(units)))
    assert torch.equal(scores(prior, equal, units), expected)


def test_order_of_parameters_and_categories_does_not_matter(prior) -> None:
    configurations = [SPACE.to_configuration(row) for row in drawn(SPACE, 100)]
    expected = scores(prior, SPACE, encoded(SPACE, configurations))
    assert torch.equal(scores(prior, TURNED, encoded(TURNED, configurations)), expected)


def test_an_extra_parameter_changes_no_score_until_it_is_learnt(prior) -> None:
    space = SearchSpace({"mine": Float(0.0, 1.0), **DOMAINS}, [DROPS])
    units = drawn(space, 60)
    expected = scores(prior, SPACE, units[:, 1:])
    torch.testing.assert_close(scores(prior, space, units), expected)
    moved = units.copy()
    moved[:, 0] = 1.0 - moved[:, 0]
    assert torch.equal(scores(prior, space, moved), scores(prior, space, units))

    aligned = prior.on(space)
    features = torch.from_numpy(aligned.encode(units))
    observed = RankingLists.single(features[:40], torch.from_numpy(units[:40, 0]).float())
    fitting = FittingSettings(n_steps=100, learning_rate=0.02)
    fitted = aligned.ensemble.fit(observed, fitting, seed=0)
    learnt = fitted.scores(features[40:]).mean(0).numpy()
    assert np.corrcoef(learnt, units[40:, 0])[0, 1] > 0.7


def test_a_parameter_that_a_study_does_not_tune_has_its_default(prior) -> None:
    space = SearchSpace({n: d for n, d in DOMAINS.items() if n != "max_depth"}, [DROPS])
    configurations = [space.to_configuration(row) for row in drawn(space)]
    at_default = [{**configuration, **DEFAULTS} for configuration in configurations]
    found = scores(prior, space, encoded(space, configurations))
    assert torch.equal(found, scores(prior, SPACE, encoded(SPACE, at_default)))
    without = replace(prior, card=replace(prior.card, defaults={}))
    assert not torch.equal(found, scores(without, space, encoded(space, configurations)))


def test_a_parameter_that_is_held_constant_is_known(prior) -> None:
    space = SearchSpace({**DOMAINS, "max_depth": Constant(3)}, [DROPS])
    configurations = [space.to_configuration(row) for row in drawn(space)]
    found = scores(prior, space, encoded(space, configurations))
    assert torch.equal(found, scores(prior, SPACE, encoded(SPACE, configurations)))


def test_names_are_matched_by_alias_and_by_mapping(prior) -> None:
    space = SearchSpace({"eta": DOMAINS["learning_rate"], "levels": DOMAINS["max_depth"]})
    mapped = prior.with_mapping({"levels": "max_depth", "not yet seen": "booster"})
    links = {link.source: link.target for link in mapped.align(space).links}
    assert links == {"eta": "learning_rate", "levels": "max_depth"}
    assert prior.knows("eta", {"eta": DOMAINS["learning_rate"]})
    assert not prior.knows("levels", {"levels": DOMAINS["max_depth"]})
    assert mapped.knows("levels", {"levels": DOMAINS["max_depth"]})
    assert not prior.knows("booster", {"booster": Categorical(("other", "words"))})


def test_parameters_to_come_are_those_of_the_prior(prior) -> None:
    domains = {"mine": Float(0.0, 1.0), "eta": Float(1e-3, 0.1, "log")}
    completed = prior.completed(domains)
    assert set(completed.domains) == {"mine", "eta", "max_depth", "booster", "rate_drop"}
    assert list(completed.domains)[:2] == ["mine", "eta"]  # what is known comes first
    assert completed.domains["eta"] == domains["eta"]
    assert completed.domains["rate_drop"] == DOMAINS["rate_drop"]
    assert prior.completed({}).domains == prior.space.domains
    assert prior.completed(DOMAINS).domains == DOMAINS
    stranger = {"booster": Categorical(("other", "words"))}
    assert prior.completed(stranger).domains["booster"] == stranger["booster"]
