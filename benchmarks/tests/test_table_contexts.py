"""On tables, members of a prior are in contexts of past tasks that explain what was observed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lists_of_tasks import SCORER
from presets import of_steps
from scipy.stats import spearmanr
from small_priors import QUICK, SPACE, metadata, small
from spies import spy
from torch_defaults import torch_defaults

from dre_bench import table_contexts
from dre_bench.hpob_method import DRETable
from dre_bench.table_contexts import (
    SHARPNESS,
    TableEnsemble,
    contexts_of,
    delayed,
    disagreement,
    draw_tasks,
    in_contexts,
    with_contexts,
)
from dre_plugins.engine import ContextSettings, FittingSettings, ScorerSettings
from dre_plugins.engine.settings import PRESETS
from dre_plugins.engine.surrogate import DeepRankingEnsemble, RankingLists
from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import Card

RANKS = torch.tensor([0.0, 1.0, 1.0, 2.0])
SQUARE = SearchSpace({"x0": Float(0.0, 1.0), "x1": Float(0.0, 1.0)})
PLAIN = ScorerSettings(n_members=4, hidden=(8,), range_limit=None, activation="silu")
PRESET = of_steps(20, 20, scorer=PLAIN)


# ---- drawing tasks


def test_disagreement_is_the_share_of_pairs_in_the_wrong_order() -> None:
    scores = torch.tensor(
        [
            [0.0, 1.0, 2.0, 3.0],  # right; the tie is no pair
            [3.0, 2.0, 1.0, 0.0],  # all five pairs wrong
            [0.0, 1.0, 3.0, 2.0],  # one of five wrong
            [0.0, 0.0, 0.0, 0.0],  # says nothing, so nothing wrong
        ]
    )
    with torch_defaults():
        assert disagreement(scores, RANKS).tolist() == pytest.approx([0.0, 1.0, 0.2, 0.0])


def test_values_that_are_all_alike_prefer_no_task() -> None:
    scores = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert disagreement(scores, torch.zeros(2)).tolist() == [0.0, 0.0]


def test_every_task_is_drawn_while_nothing_tells_them_apart() -> None:
    drawn = draw_tasks(torch.zeros(10), 0, 10, np.random.default_rng(0))
    assert sorted(drawn) == [*range(10)]
    assert [*drawn] != [*range(10)]  # which member gets which is random


@pytest.mark.parametrize("n_trials", [1, 10, 100])
def test_shares_follow_the_weights(n_trials: int) -> None:
    wrong = torch.tensor([0.1, 0.2, 0.5])
    weights = np.exp(-SHARPNESS * n_trials * wrong.numpy())
    drawn = draw_tasks(wrong, n_trials, 1000, np.random.default_rng(1))
    shares = np.bincount(drawn, minlength=3) / 1000
    assert np.abs(shares - weights / weights.sum()).max() <= 0.002


def test_a_draw_is_a_function_of_the_generator() -> None:
    wrong = torch.rand(20, generator=torch.Generator().manual_seed(0))
    first, again = (draw_tasks(wrong, 3, 10, np.random.default_rng(7)) for _ in range(2))
    assert (first == again).all()
    assert (first != draw_tasks(wrong, 3, 10, np.random.default_rng(8))).any()


# ---- contexts


def test_a_prior_has_a_context_of_each_past_task_up_to_a_limit(monkeypatch) -> None:
    past = metadata()
    prior = small(past)
    contexts = contexts_of(prior, past)
    assert contexts.shape == (3, 4) and contexts.dtype == np.float32
    assert len(np.unique(contexts, axis=0)) == 3
    assert contexts_of(Prior.of_beliefs(SPACE, [{"max_depth": 4}]), past).shape == (0, 0)
    monkeypatch.setattr(table_contexts, "MAX_CONTEXTS", 2)
    assert contexts_of(prior, past).shape == (2, 4)


def test_a_context_is_that_of_a_study_with_the_same_trials() -> None:
    past = metadata()
    whole = replace(QUICK, max_support=30)  # as many as a task has trials
    prior = small(past, settings=whole)
    features = torch.from_numpy(prior.on(SPACE).encode(past.tasks[1].units))
    support = RankingLists.single(features, torch.from_numpy(past.tasks[1].values).float())
    conditioned = replace(prior.ensemble, support=support)
    contexts = torch.from_numpy(contexts_of(prior, past))
    n_members = prior.ensemble.settings.n_members
    fixed = with_contexts(prior.ensemble, contexts[1].expand(n_members, -1))
    torch.testing.assert_close(fixed.scores(features), conditioned.scores(features))


def test_each_member_has_its_own_context() -> None:
    settings = replace(SCORER, n_members=3)
    ensemble = DeepRankingEnsemble.initialise(settings, 3, seed=0)
    x = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    contexts = torch.rand(2, 4, generator=torch.Generator().manual_seed(1))
    alone = [with_contexts(ensemble, context.expand(3, -1)).scores(x) for context in contexts]
    mixed = with_contexts(ensemble, contexts[[0, 1, 0]])
    assert mixed.settings == replace(settings, context=None)
    torch.testing.assert_close(mixed.scores(x)[[0, 2]], alone[0][[0, 2]])
    torch.testing.assert_close(mixed.scores(x)[1], alone[1][1])
    assert not torch.allclose(alone[0], alone[1], atol=1e-4)
    # All contexts at once, the mean of the members under each.
    of_tasks = TableEnsemble(settings, 3, ensemble.parameters, contexts=contexts)
    by_context = of_tasks._scores_by_context(x)
    torch.testing.assert_close(by_context, torch.stack(alone).mean(1))
    # It is fitted like any ensemble, from where it is.
    y = -((x - 0.3) ** 2).sum(-1)
    quick = FittingSettings(n_steps=100, learning_rate=0.02)
    fitted = mixed.fit(RankingLists.single(x, y), quick, seed=0)
    assert spearmanr(fitted.scores(x).mean(0).numpy(), y.numpy()).statistic > 0.8


def test_fine_tuning_begins_later_in_contexts() -> None:
    fitting = PRESETS["default"].from_prior
    steps = [delayed(fitting, n).n_steps for n in (1, 10, 11, 25, 40, 80)]
    assert steps == [0, 0, 7, 100, 200, 200]
    assert delayed(fitting, 25).full_length == 1
    always = PRESETS["paper"].from_prior
    assert delayed(always, 1) == always


# ---- suggestions


def prior_of_two_tasks() -> Prior:
    settings = replace(PLAIN, context=ContextSettings(hidden=8, size=4))
    ensemble = DeepRankingEnsemble.initialise(settings, 2, seed=3)
    # In the first context all scores are nearly turned round: every unit is shut.
    weight = ensemble.parameters["scorer.0.weight"].clone()
    weight[:, 2:] = 3.0
    ensemble = replace(ensemble, parameters={**ensemble.parameters, "scorer.0.weight": weight})
    return Prior(ensemble, SQUARE, Card(name="two tasks"), np.array([[0.1, 0.2]]))


CONTEXTS = np.zeros((2, 4), dtype=np.float32)
CONTEXTS[0] = -0.3


def in_the_second(prior: Prior, units: np.ndarray) -> np.ndarray:
    """Return what the second past task gives configurations."""
    ensemble = with_contexts(prior.ensemble, torch.from_numpy(CONTEXTS[[1] * 4]))
    return ensemble.scores(torch.from_numpy(SQUARE.features(units))).mean(0).numpy()


def test_in_a_table_members_are_in_contexts_of_the_past(monkeypatch) -> None:
    prior = prior_of_two_tasks()
    fixed = spy(monkeypatch, table_contexts, "with_contexts")
    table = SQUARE.canonical(np.random.default_rng(1).random((200, 2)))
    expected = in_the_second(prior, table)
    history = [
        Trial(SQUARE.to_configuration(row), TrialState.COMPLETE, float(value))
        for row, value in zip(table[:10], expected, strict=False)
    ]
    settings, on_table = RecommenderSettings(preset=PRESET), in_contexts(prior, CONTEXTS)
    recommender = Recommender(SQUARE, settings, seed=0, prior=on_table)
    (suggestion,) = recommender.suggest(history, index=10, candidates=table)
    assert suggestion.source == "model" and recommender.stats["fallbacks"] == 0
    # All members are in the one that explains what was observed.
    contexts = fixed.call_args.args[1].numpy()
    assert (contexts == CONTEXTS[1]).all() and contexts.shape == (4, 4)
    # Nothing is fine-tuned yet, so the choice is the best under that context.
    place = int((expected[10:] > expected[table.tolist().index(suggestion.units.tolist())]).sum())
    assert place < 5


def test_hpob_method_is_in_contexts_on_tables_only(monkeypatch) -> None:
    prior = prior_of_two_tasks()
    monkeypatch.setattr("dre_bench.hpob_method.contexts_of", lambda prior, past: CONTEXTS)
    fixed = spy(monkeypatch, table_contexts, "with_contexts")
    method = DRETable(seed=0, prior=prior, past=metadata(), settings=Settings(preset=PRESET))
    rows = np.random.default_rng(1).random((60, 2))
    values = in_the_second(prior, rows)
    before = fixed.call_count
    chosen = method.observe_and_suggest(rows[:10], values[:10], rows[10:])
    assert fixed.call_count == before + 1
    assert (values[10:] > values[10 + chosen]).sum() < 3
    # In the whole space the context is that of the study.
    method.observe_and_suggest(rows[:10], values[:10])
    assert fixed.call_count == before + 1 and method.stats["fallbacks"] == 0


def test_past_tasks_are_those_of_a_trained_prior() -> None:
    with pytest.raises(ValueError, match="trained prior"):
        DRETable(seed=0, past=metadata())
