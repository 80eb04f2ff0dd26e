from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dre_bench.universal.tasks import (
    MAX_CHOICES,
    MAX_FEATURES,
    MAX_LEVELS,
    Parameter,
    SyntheticTasks,
    draw_space,
)

# A category, a number, an integer, and two that are active under the second choice.
SPACE = (
    Parameter(3, is_category=True),
    Parameter(),
    Parameter(5),
    Parameter(condition=(0, 1)),
    Parameter(4, condition=(0, 1)),
)
N_TASKS = 40

pytestmark = pytest.mark.usefixtures("one_thread")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tasks_of(space: tuple[Parameter, ...] = SPACE, seed: int = 0) -> SyntheticTasks:
    return SyntheticTasks(space, N_TASKS, generator(seed))


def spaces(n: int, max_features: int) -> list[list[Parameter]]:
    rng = np.random.default_rng(0)
    return [draw_space(rng, max_features) for _ in range(n)]


# ---- spaces


@pytest.mark.parametrize("max_features", [2, 3, 7, MAX_FEATURES])
def test_a_space_has_at_most_so_many_features(max_features: int) -> None:
    sizes = [
        sum(parameter.n_features for parameter in space) for space in spaces(400, max_features)
    ]
    assert min(sizes) >= 1 and max(sizes) == max_features


def test_a_half_of_the_spaces_has_less_than_a_fifth() -> None:
    sizes = [
        sum(parameter.n_features for parameter in space) for space in spaces(2000, MAX_FEATURES)
    ]
    assert np.median(sizes) == pytest.approx(MAX_FEATURES / 5, abs=1)


def test_all_kinds_of_parameters_are_drawn() -> None:
    drawn = [parameter for space in spaces(2000, MAX_FEATURES) for parameter in space]
    for is_active in (False, True):
        numbers = {
            parameter.n_values
            for parameter in drawn
            if not parameter.is_category and (parameter.condition is None) == is_active
        }
        assert numbers == {0, *range(2, MAX_LEVELS + 1)}
    assert {parameter.n_values for parameter in drawn if parameter.is_category} == {
        *range(2, MAX_CHOICES + 1)
    }


def test_conditions_name_a_choice_of_a_category() -> None:
    conditions = [
        (space, *parameter.condition)
        for space in spaces(400, MAX_FEATURES)
        for parameter in space
        if parameter.condition is not None
    ]
    assert len({choice for _, _, choice in conditions}) == MAX_CHOICES
    for space, parent, choice in conditions:
        assert space[parent].is_category and 0 <= choice < space[parent].n_values


# ---- features


def test_features_are_those_of_real_spaces() -> None:
    tasks = tasks_of()
    units = tasks.units(200)
    features = tasks.features(units)
    one_hot, numbers, conditional = features.split([3, 2, 4], -1)
    assert features.shape == (N_TASKS, 200, sum(parameter.n_features for parameter in SPACE))
    assert torch.equal(one_hot.argmax(-1), (3 * units[..., 0]).long())
    assert torch.equal(one_hot.sum(-1), torch.ones(N_TASKS, 200))
    assert torch.equal(numbers[..., 0], units[..., 1])
    assert numbers[..., 1].unique().tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert conditional[..., 2].unique().tolist() == pytest.approx([0.0, 1 / 3, 0.5, 2 / 3, 1.0])
    is_active = one_hot[..., 1] == 1.0
    for value, flag in (conditional[..., :2].unbind(-1), conditional[..., 2:].unbind(-1)):
        assert torch.equal(flag, is_active.float())
        assert (value[~is_active] == 0.5).all() and value[is_active].std() > 0.2


def test_the_last_value_of_a_grid_includes_the_bound() -> None:
    units = torch.ones(N_TASKS, 1, len(SPACE))
    assert tasks_of().features(units)[0, 0, :5].tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]


def test_levels_of_integers_are_equally_likely() -> None:
    tasks = tasks_of()
    levels = tasks.features(tasks.units(500))[..., 4]
    _, counts = levels.unique(return_counts=True)
    assert counts.min() > 0.9 * counts.max()


# ---- values


def test_configurations_that_look_the_same_are_worth_the_same() -> None:
    tasks = tasks_of()
    units = tasks.units(60)
    is_inactive = (3 * units[..., :1]).long() != 1
    moved = units.clone()
    moved[..., 3:] = torch.where(is_inactive, tasks.units(60)[..., 3:], units[..., 3:])
    moved[..., 2] = ((5 * units[..., 2]).long() + 0.5) / 5
    moved[..., 0] = ((3 * units[..., 0]).long() + 0.5) / 3
    assert (moved != units)[..., [0, 2, 3, 4]].any(1).all()
    assert torch.equal(tasks.features(moved), tasks.features(units))
    torch.testing.assert_close(
        tasks.values(moved, is_noisy=False), tasks.values(units, is_noisy=False)
    )


@pytest.mark.parametrize("place", range(1, len(SPACE)))
def test_a_number_matters_to_some_and_not_to_all(place: int) -> None:
    tasks = tasks_of()
    units = tasks.units(100)
    units[..., 0] = 0.5
    moved = units.clone()
    moved[..., place] = tasks.units(100)[..., place]
    change = (tasks.values(moved, is_noisy=False) - tasks.values(units, is_noisy=False)).abs()
    matters = change.mean(1) > 0.02
    assert 0.3 < matters.float().mean() < 1.0


def test_values_are_about_standardised() -> None:
    tasks = tasks_of()
    values = tasks.values(tasks.units(2000), is_noisy=False)
    assert values.std(1).median().item() == pytest.approx(1.0, abs=0.1)
    assert 0.2 < values.std(1).min() and values.std(1).max() < 5.0


def test_noise_is_only_where_it_is_asked_for() -> None:
    tasks = tasks_of()
    units = tasks.units(500)
    exact = tasks.values(units, is_noisy=False)
    assert torch.equal(tasks.values(units, is_noisy=False), exact)
    noise = tasks.values(units) - exact
    deviations = noise.std(1)
    assert 0.2 < (deviations == 0).float().mean() < 0.6  # some functions have none
    assert deviations.max() < 10**-0.7 * 1.1
    louder = noise[deviations > 0.01]
    assert (louder.mean(1).abs() < 0.25 * louder.std(1)).all()
    assert not torch.equal(tasks.values(units), exact + noise)


def test_a_value_does_not_depend_on_what_else_is_asked() -> None:
    tasks = tasks_of()
    units = tasks.units(50)
    torch.testing.assert_close(
        tasks.values(units[:, 7:9], is_noisy=False), tasks.values(units, is_noisy=False)[:, 7:9]
    )


@pytest.mark.parametrize("seed", range(12))
def test_functions_of_any_space_are_finite_up_to_its_corners(seed: int) -> None:
    space = draw_space(np.random.default_rng(seed))
    tasks = SyntheticTasks(space, 16, generator(seed))
    units = tasks.units(60)
    units[:, :20] = units[:, :20].round()
    features, values = tasks.features(units), tasks.values(units)
    assert features.min() >= 0 and features.max() <= 1
    assert torch.isfinite(features).all() and torch.isfinite(values).all()
    assert math.isfinite(float(values.abs().max())) and float(values.abs().max()) < 1e3


def test_the_seed_alone_decides() -> None:
    def drawn(seed: int) -> list[torch.Tensor]:
        tasks = tasks_of(seed=seed)
        units = tasks.units(20)
        return [units, tasks.features(units), tasks.values(units)]

    state = torch.get_rng_state()
    for first, same, other in zip(drawn(1), drawn(1), drawn(2), strict=True):
        assert torch.equal(first, same) and not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_functions_of_one_space_differ() -> None:
    tasks = tasks_of()
    units = tasks.units(200)[:1].expand(N_TASKS, -1, -1)
    likeness = torch.corrcoef(tasks.values(units, is_noisy=False)).abs()
    assert likeness.fill_diagonal_(0.0).max() < 0.99 and likeness.median() < 0.5
