"""Scorers, alone and as the ensemble that is fitted."""

from dataclasses import replace

import pytest
import torch
from scipy.stats import spearmanr

from dre_plugins.engine import ContextSettings, FittingSettings, ScorerSettings, get_preset
from dre_plugins.engine.fitting import split_support
from dre_plugins.engine.scorers import context_vectors, initial_parameters, score
from dre_plugins.engine.settings import FittingError
from dre_plugins.engine.surrogate import DeepRankingEnsemble, RankingLists, fit_together


def make(settings: ScorerSettings, n_features: int = 3, seed: int = 0):
    return initial_parameters(settings, n_features, torch.Generator().manual_seed(seed))


def member_by_member(parameters, settings, x, context=None):
    """Score as the paper writes it: one scorer after the other, one configuration at a time."""
    activate = {"relu": torch.relu, "silu": torch.nn.functional.silu}[settings.activation]
    rows = []
    for m in range(settings.n_members):
        row = []
        for n in range(x.shape[0]):
            h = x[n] if context is None else torch.cat([x[n], context])
            n_layers = len(settings.hidden) + 1
            for layer in range(n_layers):
                weight = parameters[f"scorer.{layer}.weight"][m]
                h = h @ weight + parameters[f"scorer.{layer}.bias"][m, 0]
                h = activate(h) if layer < n_layers - 1 else h
            if settings.range_limit is not None:
                h = settings.range_limit * torch.tanh(settings.range_slope * h)
            row.append(h[0])
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("range_limit", [None, 2.0])
def test_stacked_scorers_equal_a_loop_over_members(activation, range_limit) -> None:
    settings = ScorerSettings(
        n_members=4, hidden=(8, 5), activation=activation, range_limit=range_limit
    )
    parameters = make(settings)
    x = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))
    stacked = score(parameters, settings, x[None, None])
    assert stacked.shape == (4, 1, 6)
    torch.testing.assert_close(stacked[:, 0], member_by_member(parameters, settings, x))


def test_context_is_concatenated_to_every_configuration() -> None:
    settings = ScorerSettings(n_members=3, hidden=(8,), context=ContextSettings(hidden=6, size=2))
    parameters = make(settings)
    x = torch.rand(5, 3, generator=torch.Generator().manual_seed(1))
    z = torch.tensor([0.3, -0.7])
    stacked = score(parameters, settings, x[None, None], z[None, None])
    torch.testing.assert_close(stacked[:, 0], member_by_member(parameters, settings, x, z))


def test_context_is_a_mean_over_the_support_only() -> None:
    settings = ScorerSettings(n_members=2, context=ContextSettings(hidden=6, size=4))
    parameters = make(settings)
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(1, 1, 5, 3, generator=generator)
    y = torch.rand(1, 1, 5, generator=generator)
    support = torch.tensor([[[True, True, False, False, False]]])

    def context(features, quantiles, member):
        return context_vectors(parameters, features, quantiles, member, "relu")

    masked = context(x, y, support)
    torch.testing.assert_close(masked, context(x[:, :, :2], y[:, :, :2], support[:, :, :2]))
    swapped = [1, 0, 2, 3, 4]
    torch.testing.assert_close(masked, context(x[:, :, swapped], y[:, :, swapped], support))
    assert not torch.allclose(masked, context(x, y + 1.0, support))
    of_nothing = context(0.0 * x, 0.0 * y, torch.zeros_like(support))
    assert of_nothing.shape == (1, 1, 4) and torch.isfinite(of_nothing).all()


def test_members_and_lists_do_not_mix() -> None:
    settings = ScorerSettings(n_members=2, hidden=(4,))
    parameters = make(settings)
    x = torch.rand(2, 3, 5, 3, generator=torch.Generator().manual_seed(1))  # own lists a member
    scores = score(parameters, settings, x)
    assert scores.shape == (2, 3, 5)
    for b in range(3):
        torch.testing.assert_close(
            scores[:, b], score(parameters, settings, x[:, b : b + 1])[:, 0]
        )
    assert not torch.allclose(scores[0], scores[1])


def test_range_controller_bounds_scores() -> None:
    settings = ScorerSettings(n_members=2, range_limit=2.0, range_slope=10.0)
    parameters = {name: 100.0 * value for name, value in make(settings).items()}
    scores = score(parameters, settings, torch.rand(1, 1, 50, 3))
    assert scores.abs().max() <= 2.0


def test_initial_parameters_depend_on_the_seed_alone() -> None:
    settings = ScorerSettings(n_members=2)
    first, again, other = make(settings), make(settings), make(settings, seed=1)
    for name, value in first.items():
        assert torch.equal(value, again[name])
        assert not torch.equal(value, other[name])


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_members": 0},
        {"hidden": ()},
        {"hidden": (32, 0)},
        {"activation": "gelu"},
        {"range_limit": 0.0},
        {"range_slope": -1.0},
    ],
)
def test_invalid_settings_name_argument_and_value(arguments) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=f"{name} must be"):
        ScorerSettings(**arguments)


def test_settings_may_be_given_lists() -> None:
    assert hash(ScorerSettings(hidden=[8, 8])) == hash(ScorerSettings(hidden=(8, 8)))


PLAIN = ScorerSettings(n_members=3, hidden=(16, 16), activation="silu")
WITH_CONTEXT = replace(PLAIN, context=ContextSettings(hidden=8, size=4))
QUICK = FittingSettings(n_steps=60, learning_rate=0.02)


def data(n: int = 40, d: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, d, generator=generator)
    return x, -((x - 0.3) ** 2).sum(-1)


def ensemble_of(settings: ScorerSettings = PLAIN) -> DeepRankingEnsemble:
    return DeepRankingEnsemble.initialise(settings, 3, seed=0)


def agreement(ensemble: DeepRankingEnsemble, x: torch.Tensor, y: torch.Tensor) -> float:
    return float(spearmanr(ensemble.scores(x).mean(0).numpy(), y.numpy()).statistic)


@pytest.mark.parametrize(("preset", "least"), [("default", 0.9), ("paper", 0.7)])
@pytest.mark.parametrize("context", [None, ContextSettings()], ids=["plain", "context"])
def test_presets_learn_the_order_of_unseen_points(preset, least, context) -> None:
    x, y = data()
    chosen = get_preset(preset)
    ensemble = ensemble_of(replace(chosen.scorer, n_members=3, context=context))
    fitting = replace(chosen.from_random, n_steps=200)
    fitted = ensemble.fit(RankingLists.single(x, y), fitting, seed=0)
    # A random Deep Set is noise that the scorers have to unlearn.
    assert agreement(fitted, *data(200, seed=1)) > (least if context is None else 0.7)


def test_fitting_starts_from_the_saved_state_and_leaves_it_alone() -> None:
    x, y = data()
    ensemble = ensemble_of()
    before = {name: value.clone() for name, value in ensemble.parameters.items()}
    first = ensemble.fit(RankingLists.single(x, y), QUICK, seed=0)
    again = ensemble.fit(RankingLists.single(x, y), QUICK, seed=0)
    for name, value in ensemble.parameters.items():
        assert torch.equal(value, before[name])
        assert torch.equal(first.parameters[name], again.parameters[name])


def test_padding_changes_nothing() -> None:
    x, y = data(20)
    padded = RankingLists(
        features=torch.cat([x, torch.full((5, 3), 9.0)])[None, None],
        values=torch.cat([y, torch.full((5,), 9.0)])[None, None],
        mask=(torch.arange(25) < 20)[None, None],
        weights=torch.ones(1),
    )
    ensemble = ensemble_of()
    plain = ensemble.fit(RankingLists.single(x, y), QUICK, seed=0)
    torch.testing.assert_close(
        plain.scores(x), ensemble.fit(padded, QUICK, seed=0).scores(x), rtol=1e-3, atol=1e-4
    )


def test_lists_of_different_lengths_and_weights_are_fitted_together() -> None:
    x, y = data(30)
    n_lists = RankingLists(
        features=torch.stack([x, x])[None],
        values=torch.stack([y, -y])[None],
        mask=torch.stack([torch.ones(30, dtype=torch.bool), torch.arange(30) < 12])[None],
        weights=torch.tensor([1.0, 0.01]),
    )
    ensemble = ensemble_of()
    assert agreement(ensemble.fit(n_lists, QUICK, seed=0), x, y) > 0.7
    turned = replace(n_lists, weights=torch.tensor([0.01, 1.0]))
    assert agreement(ensemble.fit(turned, QUICK, seed=0), x[:12], y[:12]) < -0.5


def test_each_member_may_have_its_own_lists() -> None:
    x, y = data(30)
    signs = torch.tensor([1.0, -1.0, 1.0])[:, None, None]
    lists = RankingLists(
        features=x.expand(3, 1, -1, -1),
        values=signs * y,
        mask=torch.ones(3, 1, 30, dtype=torch.bool),
        weights=torch.ones(1),
    )
    scores = ensemble_of().fit(lists, QUICK, seed=0).scores(x)
    order = [spearmanr(member.numpy(), y.numpy()).statistic for member in scores]
    assert order[0] > 0.7 and order[1] < -0.7 and order[2] > 0.7


def test_ensembles_that_are_fitted_together_are_as_if_each_was_fitted_alone() -> None:
    (x, y), few = data(30), replace(QUICK, n_steps=20)
    ensembles = [
        DeepRankingEnsemble.initialise(replace(PLAIN, n_members=n), 3, seed=n) for n in (2, 3, 1)
    ]
    lists = [
        RankingLists.single(x, y),
        RankingLists.single(x[:11], -y[:11]),
        RankingLists(
            features=torch.stack([x, x])[None],
            values=torch.stack([y, -y])[None],
            mask=torch.stack([torch.arange(30) < 9, torch.arange(30) < 30])[None],
            weights=torch.tensor([0.5, 2.0]),
        ),
    ]
    separate = [
        ensemble.fit(part, few, seed=0) for ensemble, part in zip(ensembles, lists, strict=True)
    ]
    together = fit_together(ensembles, lists, few)
    assert [ensemble.settings.n_members for ensemble in together] == [2, 3, 1]
    for first, second in zip(separate, together, strict=True):
        # What shifts all scores of a member is no part of the loss, and free to drift.
        centred = [
            each.scores(x) - each.scores(x).mean(1, keepdim=True) for each in (first, second)
        ]
        torch.testing.assert_close(*centred, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 6])
@pytest.mark.parametrize("settings", [PLAIN, WITH_CONTEXT], ids=["plain", "context"])
def test_short_lists_fit(n, settings) -> None:
    x, y = data(n)
    fitted = ensemble_of(settings).fit(RankingLists.single(x, y), QUICK, seed=0)
    assert torch.isfinite(fitted.scores(x)).all()


def test_support_and_query_are_disjoint_and_differ_by_member() -> None:
    mask = torch.zeros(1, 2, 20, dtype=torch.bool)
    mask[0, 0, :15] = True
    mask[0, 1, :3] = True
    support, query = split_support(mask, 4, 0.2, torch.Generator().manual_seed(0))
    assert (support[:, 0].sum(-1) == 3).all()
    assert not (support[:, 0] & query[:, 0]).any()
    assert ((support[:, 0] | query[:, 0]) == mask[:, 0]).all()
    assert len({tuple(row.tolist()) for row in support[:, 0]}) > 1
    assert (support[:, 1] == mask[:, 1]).all() and (query[:, 1] == mask[:, 1]).all()


def test_a_fit_that_diverges_says_so() -> None:
    x, y = data()
    ensemble = ensemble_of()
    with pytest.raises(FittingError, match="not finite"):
        ensemble.fit(RankingLists.single(x * float("nan"), y), QUICK, seed=0)


@pytest.mark.parametrize("settings", [PLAIN, WITH_CONTEXT], ids=["plain", "context"])
def test_a_first_slope_draws_the_first_layer_along_features(settings) -> None:
    plain, steep = (
        DeepRankingEnsemble.initialise(settings, 3, seed=0, first_slope=slope).parameters
        for slope in (None, 8.0)
    )
    weight, bias = steep["scorer.0.weight"], steep["scorer.0.bias"]
    assert ((weight[:, :3] != 0).sum(1) == 1).all()
    assert 7.0 < weight[:, :3].abs().max() <= 8.0
    # Where a unit bends lies within the range of its feature, and anywhere in it.
    bend = -bias[:, 0] / weight[:, :3].sum(1)
    low = -1.0 if settings.centred else 0.0
    assert bend.min() >= low and bend.max() <= 1.0
    assert abs(bend.mean() - (low + 1.0) / 2.0) < 0.15
    assert torch.equal(weight[:, 3:], plain["scorer.0.weight"][:, 3:])  # of the context
    others = plain.keys() - {"scorer.0.weight", "scorer.0.bias"}
    assert all(torch.equal(plain[name], steep[name]) for name in others)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_agrees_with_the_cpu() -> None:
    x, y = data(200)
    scores = [
        DeepRankingEnsemble.initialise(WITH_CONTEXT, 3, seed=0, device=device)
        .fit(RankingLists.single(x, y), QUICK, seed=0)
        .scores(x)
        .cpu()
        for device in ("cpu", "cuda")
    ]
    for cpu, cuda in zip(*scores, strict=True):
        assert spearmanr(cpu.numpy(), cuda.numpy()).statistic > 0.99
