"""What `AskTell` says of where its configurations come from."""

import pickle
from typing import Any
from unittest.mock import Mock

import pytest
from presets import TINY
from small_spaces import told
from spies import spy

from dre_plugins import Prior
from dre_plugins.recommend.explanation import SOURCES, Explanation
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Float, Integer, SearchSpace
from dre_plugins.study import AskTell

PLANE = {"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}


def study_of(space: Any = PLANE, **arguments: Any) -> AskTell:
    return AskTell(
        space, **{"seed": 0, "settings": Settings(preset=TINY), "n_startup_trials": 4, **arguments}
    )


def summed(study: AskTell, n: int, sign: float = 1.0) -> AskTell:
    return told(study, n, lambda c: sign * sum(v for v in c.values() if v != "u"))


def sources(study: AskTell) -> list[str]:
    return [study.explain(number).source for number in range(len(study.trials))]


def test_from_start_up_to_model() -> None:
    study = summed(study_of(), 6)
    assert sources(study) == ["random"] * 4 + ["model"] * 2
    assert study.explain(3) == Explanation("random")
    explanation = study.explain(5)
    assert explanation.n_reference == 512 + 5  # spread points, and the trials that had ended
    assert 0 < explanation.predicted_rank <= explanation.n_reference
    assert explanation.spread is not None and explanation.spread > 0
    assert explanation.prior_weight is None
    assert str(explanation).startswith("model: the ensemble's choice; expected among the best ")


def test_each_trial_of_a_batch_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    study = summed(study_of(), 5)
    suggest = spy(monkeypatch, Recommender, "suggest")
    numbers = [number for number, _ in study.ask_batch(3)]
    explained = [study.explain(number) for number in numbers]
    assert explained == [suggestion.explanation for suggestion in suggest.results[-1]]
    assert len({explanation.predicted_rank for explanation in explained}) > 1


def test_with_a_prior_its_weight_is_told() -> None:
    prior = Prior.of_beliefs(PLANE, [{"x": 0.0}])
    right = summed(study_of(prior=prior, n_startup_trials=None), 8)
    assert (right.explain(0).source, right.explain(0).prior_weight) == ("prior", 1.0)
    assert right.explain(7).prior_weight is not None and right.explain(7).prior_weight > 0.5
    wrong = summed(study_of(prior=prior, n_startup_trials=None), 15, sign=-1.0)
    assert wrong.explain(14).prior_weight == 0.0


def test_enqueued_whole_or_in_part_and_added() -> None:
    study = summed(study_of(), 5)
    study.enqueue({"x": 0.5, "y": 0.5})
    study.enqueue({"x": 0.25})
    study.ask_batch(3)
    study.add({"x": 0.0, "y": 0.0}, 1.0)
    assert sources(study)[5:] == ["enqueued", "enqueued", "model", "unknown"]


def test_exhausted_and_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    space = SearchSpace({"a": Integer(0, 2), "b": Categorical(("u",))})
    study = summed(study_of(space, n_startup_trials=2), 4)
    assert sources(study) == ["random", "random", "model", "exhausted"]
    monkeypatch.setattr("dre_plugins.engine.surrogate.fit", Mock(side_effect=MemoryError))
    assert sources(summed(study_of(), 5))[-1] == "fallback"


def test_an_explanation_stays_whatever_becomes_of_the_trial() -> None:
    study = summed(study_of(), 5)
    number, _ = study.ask()
    before = study.explain(number)
    study.report(number, 1, 0.5)
    study.stop(number)
    study.restart(number)
    study.tell(number, None)
    assert study.explain(number) == before and before.source == "model"
    assert pickle.loads(pickle.dumps(study)).explain(number) == before


@pytest.mark.parametrize(
    ("rank", "spread", "weight", "words"),
    [
        (0.4, 0.1, None, "expected to be better than 500 random configurations, quite sure"),
        (1.0, 20.0, None, "expected among the best 1 % of random configurations, unsure"),
        (250.0, 9.0, None, "expected among the best 50 % of random configurations, quite sure"),
        (
            *(500.5, 51.0, 0.8),
            "expected among the best 100 % of random configurations, very unsure; "
            "weight of the prior 80%",
        ),
    ],
)
def test_what_a_model_expects_is_said_in_words(
    rank: float, spread: float, weight: float | None, words: str
) -> None:
    text = str(Explanation("model", rank, spread, 500, weight))
    assert text == f"model: {SOURCES['model']}; {words}"
