"""`prior="auto"` where a framework gives the whole search space at once."""

from __future__ import annotations

import logging
import pickle
from dataclasses import replace

import pytest
from presets import TINY

from dre_plugins.adapters.common.options import Options
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Domain, Float, Integer, SearchSpace

RATE = Float(1e-3, 0.3, "log")
BOOSTING: dict[str, Domain] = {
    "lgbm-lr": RATE,
    "lgbm-num-leaves": Integer(4, 128, "log"),
    "patience": Float(0.0, 1.0),
}
LEARNING: dict[str, Domain] = {"learning_rate": RATE, "gamma": Float(0.9, 0.999)}


def study_of(space: dict[str, Domain]) -> AskTell:
    options = Options(prior="auto", settings=Settings(preset=replace(TINY, universal_turns=True)))
    return AskTell(SearchSpace(space), seed=0, prior=options.load_prior(), **options.for_study())


def test_the_learner_is_recognised_and_named(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of(BOOSTING)
    with caplog.at_level(logging.INFO):
        number, first = study.ask()
    assert study.explain(number).source == "prior"
    assert "prior 'lightgbm' knows lgbm-lr (there 'learning_rate')" in caplog.text
    assert "parameters of LightGBM: if not, prior='universal'" in caplog.text
    assert pickle.loads(pickle.dumps(study_of(BOOSTING))).ask()[1] == first


@pytest.mark.parametrize("space", [LEARNING, {"svm_kernel": Categorical(("own", "rbf"))}])
def test_where_no_prior_knows_anything_a_study_begins_at_random(space: dict[str, Domain]) -> None:
    study = study_of(space)
    number, _ = study.ask()
    assert study.explain(number).source == "random"


def test_the_prior_has_the_first_suggestion_only_until_it_is_confirmed() -> None:
    study = study_of(BOOSTING)
    batch = [number for number, _ in study.ask_batch(4)]
    assert [study.explain(number).source for number in batch] == ["prior", *["random"] * 3]
    alone = study_of(BOOSTING)
    for _ in range(4):
        number, configuration = alone.ask()
        alone.tell(number, configuration["lgbm-lr"])
    assert [alone.explain(number).source for number in range(4)] == ["prior", *["random"] * 3]
