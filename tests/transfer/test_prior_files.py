"""Priors as files: what is written, read back, and refused."""

import copy
import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from small_priors import SCORER, SPACE, metadata, of_a_formula, scores, small
from small_spaces import drawn

from dre_plugins.engine import checkpoint
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.transfer import prior_file
from dre_plugins.transfer.prior import Card, Prior, PriorError


@pytest.fixture(scope="module")
def prior() -> Prior:
    return of_a_formula()


@pytest.fixture
def path(prior, tmp_path) -> Path:
    prior.save(tmp_path / "prior.safetensors")
    return tmp_path / "prior.safetensors"


def card_of(path: Path) -> dict:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["card"])


def rewritten(path: Path, **header: str) -> None:
    texts, tensors = checkpoint.parsed(path.read_bytes())
    checkpoint.save(path, tensors, {**texts, **header})


def refused(path: Path, match: str) -> None:
    with pytest.raises(PriorError, match=match):
        Prior.load(path)


def test_a_prior_comes_back_as_it_was(prior, path) -> None:
    loaded = Prior.load(path)
    assert loaded.space == prior.space
    assert loaded.card == prior.card
    assert loaded.ensemble.settings == SCORER
    units = drawn(SPACE, 100)
    assert torch.equal(scores(loaded, SPACE, units), scores(prior, SPACE, units))
    again = path.with_name("again.safetensors")
    loaded.save(again)
    assert card_of(again) == card_of(path)


@pytest.mark.parametrize("contexts", [None, [[1.0] * 4], [[1.0, 2.0]], [[None] * 4], "x"])
def test_contexts_of_past_tasks_in_older_files_are_ignored(prior, path, contexts) -> None:
    written = card_of(path)
    assert "contexts" not in written
    card = {**written, "contexts": contexts}
    card["sha256"] = prior_file.content_hash(prior.ensemble.parameters, SCORER, card)
    rewritten(path, card=json.dumps(card))
    loaded = Prior.load(path)
    units = drawn(SPACE, 100)
    assert torch.equal(scores(loaded, SPACE, units), scores(prior, SPACE, units))
    loaded.save(path)
    assert card_of(path) == written


def test_a_file_is_read_once_until_it_changes(prior, path) -> None:
    first = Prior.load(path)
    mapped = Prior.load(path, mapping={"mine": prior.space.names[0]})
    assert mapped.ensemble is first.ensemble and not first.mapping
    replace(prior, card=replace(prior.card, name="other")).save(path)
    assert Prior.load(path).card.name == "other"


def test_a_prior_comes_back_whatever_its_categories(tmp_path) -> None:
    layers = Categorical(((16,), (16, 16), None, math.nan, True, 1))
    space = SearchSpace({"layers": layers, "rate": Float(0.0, 1.0)})
    trained = small(metadata(2, space), defaults={})
    trained.save(tmp_path / "prior.safetensors")
    loaded = Prior.load(tmp_path / "prior.safetensors")
    assert loaded.space == trained.space
    units = drawn(space)
    assert torch.equal(scores(loaded, space, units), scores(trained, space, units))


def test_the_card_in_the_file_is_json(prior, path) -> None:
    card = card_of(path)
    assert {"card", "space", "sha256"} <= set(card)
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


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"format": "other"}, "format is 'other', expected .*Prior.save"),
        ({"version": "2"}, "version 2 is newer than 1; upgrade"),
        ({"settings": '{"n_members": 3}'}, "damaged header"),
        ({"n_features": "9"}, "expected torch.float32"),
    ],
)
def test_what_this_version_cannot_read_is_refused(path, header, message) -> None:
    rewritten(path, **header)
    refused(path, message)


def test_pickles_are_named(path) -> None:
    for content in (b"PK", b"\x80\x04K\x01."):
        path.write_bytes(content)
        refused(path, "this is a pickle")
    path.write_bytes(b"")
    refused(path, "not a readable safetensors file, damaged or cut off")


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


CARDS = {
    "licence": (lambda c: c.replace('"licence": "', '"licence": "MIT'), "damaged: the hash"),
    "defaults": (lambda c: c.replace('"defaults": {', '"defaults": 5, "old": {', 1), "damaged"),
    "huge number": (
        lambda c: c.replace('"favourites": [', f'"favourites": [[1{"0" * 400}], ', 1),
        "damaged",
    ),
    "nesting": (lambda c: "[" * 100_000, "damaged"),
    **{
        text: (lambda c, text=text: text, r"prior\.safetensors: damaged card")
        for text in ("", "{", "[]", "{}", "1", '{"card": 1}')
    },
}


@pytest.mark.parametrize("name", CARDS)
def test_wrong_cards_are_refused(path, name) -> None:
    """Whatever is in the header, with a right hash or a wrong one."""
    change, message = CARDS[name]
    card = json.dumps(card_of(path))
    assert change(card) != card
    rewritten(path, card=change(card))
    refused(path, message)
