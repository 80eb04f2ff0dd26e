import pytest
import torch

from dre_plugins.engine import ContextSettings, ScorerSettings
from dre_plugins.engine.scorers import context_vectors, initial_parameters, score


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


def test_an_empty_support_has_a_finite_context() -> None:
    settings = ScorerSettings(n_members=2, context=ContextSettings())
    parameters = make(settings)
    nothing = torch.zeros(1, 1, 1, dtype=torch.bool)
    z = context_vectors(parameters, torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1), nothing, "relu")
    assert z.shape == (1, 1, 16)
    assert torch.isfinite(z).all()


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
