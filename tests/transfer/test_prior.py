"""Priors: trained on metadata of any spaces, written to a file, used on any space."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from dre_plugins.engine import ContextSettings, FittingSettings, ScorerSettings
from dre_plugins.engine import checkpoint as ensembles
from dre_plugins.engine.surrogate import RankingLists
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Condition, Constant, Float, Integer, SearchSpace
from dre_plugins.transfer import prior_file, training
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Card, Prior, PriorError
from dre_plugins.transfer.prior_file import CATALOGUE
from dre_plugins.transfer.spaces.merging import in_canonical_order
from dre_plugins.transfer.training import held_out

SCORER = ScorerSettings(
    n_members=2,
    hidden=(8, 8),
    activation="silu",
    range_limit=None,
    centred=True,
    context=ContextSettings(hidden=8, size=4),
)
QUICK = MetaTrainingSettings(
    n_steps=30, learning_rate=0.01, n_lists=4, list_length=12, max_support=8, validate_every=10
)

DOMAINS = {
    "learning_rate": Float(1e-4, 1.0, "log"),
    "max_depth": Integer(1, 12),
    "booster": Categorical(("tree", "linear", "dart")),
    "rate_drop": Float(0.0, 1.0),
}
DROPS = Condition("rate_drop", "booster", ("dart",))
SPACE = SearchSpace(DOMAINS, [DROPS])
DEFAULTS = {"max_depth": 6}
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


def drawn(space: SearchSpace, n: int = 30, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return space.canonical(rng.random((n, space.n_parameters)))


def task(name: str, seed: int = 0, space: SearchSpace = SPACE, n: int = 30) -> Task:
    units = drawn(space, n, seed)
    values = -np.square(units[:, 0] - 0.4) + 0.01 * seed
    return Task(name, space, units, values, np.zeros(n, dtype=np.bool_))


def metadata(n_tasks: int = 3, space: SearchSpace = SPACE) -> MetaDataset:
    tasks = [task(f"task {i}", i, space) for i in range(n_tasks)]
    return MetaDataset.of(tasks, source="a formula", licence="CC0-1.0")


def small(data: MetaDataset, **options) -> Prior:
    return Prior.train(
        data, **{"scorer": SCORER, "settings": QUICK, "defaults": DEFAULTS} | options
    )


@pytest.fixture(scope="module")
def prior() -> Prior:
    return small(metadata(), name="formula", description="One formula.", rebuild="make formula")


def scores(prior: Prior, space: SearchSpace, units: np.ndarray) -> torch.Tensor:
    aligned = prior.on(space)
    return aligned.ensemble.scores(torch.from_numpy(aligned.encode(units)))


def encoded(space: SearchSpace, configurations: list[dict]) -> np.ndarray:
    return space.canonical(space.to_units(configurations))


# ---- training


def test_the_card_says_where_a_prior_comes_from(prior) -> None:
    card = prior.card
    assert (card.name, card.description, card.rebuild) == (
        "formula",
        "One formula.",
        "make formula",
    )
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


def test_only_the_order_of_values_counts(prior) -> None:
    tasks = [
        replace(task, values=np.exp(10.0 * task.values) * 10.0 ** (30 * row))
        for row, task in enumerate(metadata())
    ]
    stretched = small(MetaDataset.of(tasks))
    for name, value in prior.ensemble.parameters.items():
        assert torch.equal(value, stretched.ensemble.parameters[name])


def test_order_of_what_past_tasks_list_does_not_count(prior) -> None:
    tasks = []
    for task in metadata():
        units = encoded(TURNED, [SPACE.to_configuration(row) for row in task.units])
        tasks.append(replace(task, space=TURNED, units=units))
    turned = small(MetaDataset.of(tasks))
    assert turned.space == prior.space
    for name, value in prior.ensemble.parameters.items():
        assert torch.equal(value, turned.ensemble.parameters[name])


def test_metadata_that_teach_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no task.*left out.*'empty study': 2"):
        small(MetaDataset.of([task("a", n=0), task("b", n=0)]))
    failed = Task.from_trials("f", SPACE, [Trial({"max_depth": 3}, TrialState.FAILED)] * 3)
    with pytest.raises(ValueError, match="None of 1 past tasks has two evaluations that differ"):
        small(MetaDataset.of([failed]))


def test_tasks_that_teach_nothing_are_not_held_out() -> None:
    dull = [replace(task(f"dull {i}"), values=np.zeros(30)) for i in range(2)]
    good = [task(f"good {i}", i) for i in range(10)]
    tasks = [*good[:4], dull[0], *good[4:8], dull[1], *good[8:]]
    data = MetaDataset.of(tasks)
    assert [task.name for task in held_out(data)[1]] == ["good 4", "good 9"]
    assert len(held_out(data)[0]) == 10
    card = small(data).card
    assert (card.validation["n_tasks"], card.training["n_task_lists"]) == (2, 8)


def test_an_interrupted_training_goes_on(prior, tmp_path) -> None:
    path = tmp_path / "training.safetensors"
    for _ in range(2):
        found = small(metadata(), checkpoint=path, resume=True)
        for name, value in prior.ensemble.parameters.items():
            assert torch.equal(value, found.ensemble.parameters[name])


def test_the_users_torch_does_not_matter(prior) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with torch.inference_mode():
            found = small(metadata())
            again = scores(found, SPACE, drawn(SPACE))
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
    assert torch.equal(again, scores(prior, SPACE, drawn(SPACE)))


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


def test_spaces_with_nothing_in_common_are_refused(prior) -> None:
    with pytest.raises(ValueError, match=r"no parameter in common: \['dropout'\].*'max_depth'"):
        prior.on(SearchSpace({"dropout": Float(0.0, 1.0)}))


def test_names_are_matched_by_alias_and_by_mapping(prior) -> None:
    space = SearchSpace({"eta": DOMAINS["learning_rate"], "levels": DOMAINS["max_depth"]})
    mapped = prior.with_mapping({"levels": "max_depth", "not yet seen": "booster"})
    links = {link.source: link.target for link in mapped.align(space).links}
    assert links == {"eta": "learning_rate", "levels": "max_depth"}
    assert prior.knows("eta", DOMAINS["learning_rate"])
    assert not prior.knows("levels", DOMAINS["max_depth"])
    assert mapped.knows("levels", DOMAINS["max_depth"])
    assert not prior.knows("booster", Categorical(("other", "words")))


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


# ---- files


@pytest.fixture
def path(prior, tmp_path) -> Path:
    prior.save(tmp_path / "prior.safetensors")
    return tmp_path / "prior.safetensors"


def card_of(path: Path) -> dict:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["card"])


def refused(path: Path, match: str) -> None:
    with pytest.raises(PriorError, match=match):
        Prior.load(path)


def test_a_prior_comes_back_as_it_was(prior, path) -> None:
    loaded = Prior.load(path)
    assert loaded.space == prior.space
    assert loaded.card == prior.card
    assert loaded.ensemble.settings == SCORER
    assert np.array_equal(loaded.contexts, prior.contexts)
    units = drawn(SPACE, 100)
    assert torch.equal(scores(loaded, SPACE, units), scores(prior, SPACE, units))
    again = path.with_name("again.safetensors")
    loaded.save(again)
    assert card_of(again) == card_of(path)


def test_a_context_of_each_past_task_goes_with_a_prior(prior) -> None:
    assert prior.contexts.shape == (3, 4) and prior.contexts.dtype == np.float32
    assert len(np.unique(prior.contexts, axis=0)) == 3
    assert prior.on(SPACE).contexts is prior.contexts
    assert Prior.of_few(metadata()).contexts is None


def test_contexts_of_many_tasks_are_thinned(monkeypatch) -> None:
    monkeypatch.setattr(training, "MAX_CONTEXTS", 2)
    assert small(metadata()).contexts.shape == (2, 4)


def test_a_file_from_before_there_were_contexts_is_read(prior, path) -> None:
    card = {key: value for key, value in card_of(path).items() if key != "contexts"}
    card["sha256"] = prior_file.content_hash(prior.ensemble.parameters, SCORER, card)
    rewritten(path, json.dumps(card))
    loaded = Prior.load(path)
    assert loaded.contexts is None
    units = drawn(SPACE, 100)
    assert torch.equal(scores(loaded, SPACE, units), scores(prior, SPACE, units))


@pytest.mark.parametrize("contexts", [[[1.0, 2.0]], [], [[None] * 4], "x", 5])
def test_contexts_that_cannot_be_are_refused(prior, path, contexts) -> None:
    card = {**card_of(path), "contexts": contexts}
    card["sha256"] = prior_file.content_hash(prior.ensemble.parameters, SCORER, card)
    rewritten(path, json.dumps(card))
    refused(path, "damaged card")


def test_a_file_is_read_once_until_it_changes(prior, path) -> None:
    first = Prior.load(path)
    mapped = Prior.load(path, mapping={"mine": prior.space.names[0]})
    assert mapped.ensemble is first.ensemble and not first.mapping
    replace(prior, card=replace(prior.card, name="other")).save(path)
    assert Prior.load(path).card.name == "other"


def test_a_prior_comes_back_whatever_its_categories(tmp_path) -> None:
    space = SearchSpace(
        {
            "layers": Categorical(((16,), (16, 16), None, math.nan, True, 1)),
            "rate": Float(0.0, 1.0),
        }
    )
    trained = small(metadata(2, space), defaults={})
    trained.save(tmp_path / "prior.safetensors")
    loaded = Prior.load(tmp_path / "prior.safetensors")
    assert loaded.space == trained.space
    units = drawn(space)
    assert torch.equal(scores(loaded, space, units), scores(trained, space, units))


def test_the_card_in_the_file_is_json(prior, path) -> None:
    card = card_of(path)
    assert {"schema", "card", "space", "sha256"} <= set(card)
    assert card["schema"] == 1
    assert card["card"]["name"] == "formula"
    assert Card.from_dict({**card["card"], "from a later version": 1}) == prior.card


def test_priors_that_ship_are_loaded_by_name(prior, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(prior_file, "CATALOGUE", tmp_path)
    prior.save(tmp_path / "formula.safetensors")
    loaded = Prior.load("formula", mapping={"levels": "max_depth"})
    assert loaded.card == prior.card
    assert loaded.mapping == {"levels": "max_depth"}
    with pytest.raises(PriorError, match=r"one of \['formula'\] or the path.*'formulae'"):
        Prior.load("formulae")
    refused(tmp_path / "none.safetensors", r"\['formula'\].*none\.safetensors")


def test_damaged_weights_are_noticed(path) -> None:
    whole = bytearray(path.read_bytes())
    whole[-4] ^= 1  # the lowest bit of the last weight
    path.write_bytes(whole)
    refused(path, r"prior\.safetensors: damaged: the hash")


def test_a_file_that_is_cut_off_is_refused(path) -> None:
    whole = path.read_bytes()
    for length in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused(path, r"prior\.safetensors.*damaged or cut off")


def test_a_flipped_byte_is_damage_or_the_same_prior(prior, path) -> None:
    whole = path.read_bytes()
    for place in range(0, len(whole), 101):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        try:
            loaded = Prior.load(path)
        except PriorError:
            continue
        assert loaded.card == prior.card


def test_pickles_are_never_loaded(prior, path) -> None:
    torch.save(prior.ensemble.parameters, path)
    refused(path, "pickle or a torch archive")
    path.write_bytes(pickle.dumps(prior.card))
    refused(path, "pickle or a torch archive")


def rewritten(path: Path, text: str) -> None:
    parameters, settings, n_features, _ = ensembles.load(path)
    ensembles.save(path, parameters, settings, n_features, text)


def test_a_newer_schema_asks_for_an_upgrade(path) -> None:
    rewritten(path, json.dumps({**card_of(path), "schema": 2}))
    refused(path, "schema 2 is newer than 1; upgrade dre-plugins")


def test_an_ensemble_without_a_card_is_no_prior(prior, path) -> None:
    prior.ensemble.save(path)
    refused(path, r"an ensemble without a card; write it by Prior\.save")


@pytest.mark.parametrize("text", ["{", "[]", "{}", "1", '{"schema": "x"}', '{"schema": 1}'])
def test_a_damaged_card_is_refused(path, text) -> None:
    rewritten(path, text)
    refused(path, r"prior\.safetensors: damaged card")


def test_a_changed_card_is_noticed(path) -> None:
    card = card_of(path)
    card["card"]["licence"] = "MIT"
    rewritten(path, json.dumps(card))
    refused(path, "damaged: the hash")


def test_priors_can_be_pickled_and_copied(prior) -> None:
    units = drawn(SPACE)
    expected = scores(prior, SPACE, units)
    for twin in (pickle.loads(pickle.dumps(prior)), copy.deepcopy(prior)):
        assert twin.card == prior.card and twin.space == prior.space
        assert torch.equal(scores(twin, SPACE, units), expected)
    aligned = pickle.loads(pickle.dumps(prior.on(SPACE)))
    assert torch.equal(aligned.ensemble.scores(torch.from_numpy(aligned.encode(units))), expected)


@pytest.mark.parametrize(
    ("mapping", "message"), [({"mine": "nope"}, "nope"), ({"a": "eta", "b": "eta"}, "eta")]
)
def test_a_mapping_that_cannot_be_is_refused_at_once(mapping, message) -> None:
    with pytest.raises(ValueError, match=message):
        Prior.load("xgboost", mapping=mapping)


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card.replace('"schema": 1', '"schema": Infinity'),
        lambda card: card.replace('"defaults": {', '"defaults": 5, "old": {', 1),
        lambda card: card.replace('"favourites": [', f'"favourites": [[1{"0" * 400}], ', 1),
        lambda card: "[" * 100_000,
    ],
    ids=["infinite schema", "defaults", "huge number", "nesting"],
)
def test_hostile_cards_are_refused(tmp_path, change) -> None:
    """Whatever is in the header, with a right hash or a wrong one (R23)."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(CATALOGUE / "xgboost.safetensors", framework="pt") as file:
        header = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    save_file(tensors, tmp_path / "p.safetensors", {**header, "card": change(header["card"])})
    with pytest.raises(PriorError):
        Prior.load(tmp_path / "p.safetensors")
