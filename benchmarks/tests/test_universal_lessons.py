from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch

from dre_bench.universal import lessons
from dre_bench.universal.lessons import LIMIT, Lesson, Scale, draw_lesson
from dre_bench.universal.tasks import SyntheticTasks

pytestmark = pytest.mark.usefixtures("one_thread")


def lesson(
    seed: int = 0, n_trials: int = 20, n_queries: int = 10, max_features: int = 6
) -> Lesson:
    return draw_lesson(np.random.default_rng(seed), 6, n_trials, n_queries, max_features)


def parts(lesson: Lesson) -> list[torch.Tensor]:
    return [getattr(lesson, field.name) for field in fields(lesson)]


@pytest.mark.parametrize("n_trials", [1, 3, 20, 80])
@pytest.mark.parametrize("n_queries", [1, 7])
def test_a_lesson_has_the_shapes_that_are_asked_for(n_trials: int, n_queries: int) -> None:
    for seed in range(3):
        drawn = lesson(seed, n_trials, n_queries)
        n_features = drawn.features.shape[-1]
        assert n_features <= 6
        assert drawn.features.shape == (6, n_trials, n_features)
        assert drawn.targets.shape == (6, n_trials)
        assert drawn.queries.shape == (6, n_queries, n_features)
        assert drawn.answers.shape == (6, n_queries)
        assert all(torch.isfinite(part).all() for part in parts(drawn))


def test_the_seed_alone_decides() -> None:
    state = torch.get_rng_state()
    for first, same, other in zip(
        parts(lesson(1)), parts(lesson(1)), parts(lesson(2)), strict=True
    ):
        assert torch.equal(first, same)
        assert first.shape != other.shape or not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_lessons_of_one_generator_differ() -> None:
    rng = np.random.default_rng(0)
    first, second = (draw_lesson(rng, 6, 20, 10, 6) for _ in range(2))
    assert not torch.equal(first.targets, second.targets)


def test_targets_are_standardised_or_nothing() -> None:
    for seed in range(20):
        targets = lesson(seed).targets
        torch.testing.assert_close(targets.mean(1), torch.zeros(6), atol=1e-5, rtol=0)
        variance = targets.var(1, correction=0)
        assert ((variance - 1).abs() < 1e-4).logical_or(variance == 0).all()


def test_answers_are_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(float(lesson(seed).answers.abs().max()) for seed in range(20)) <= LIMIT
    before = lesson().answers
    monkeypatch.setattr(lessons, "LIMIT", 0.5)
    assert torch.equal(lesson().answers, before.clamp(-0.5, 0.5)) and before.abs().max() > 0.5


def test_trials_close_in_on_what_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    def gain(searching: float) -> float:
        monkeypatch.setattr(lessons, "SEARCHING", searching)
        drawn = [lesson(seed, 40).targets for seed in range(15)]
        return float(
            np.mean([float(answers[:, 20:].mean() - answers[:, :4].mean()) for answers in drawn])
        )

    assert gain(1.0) > 0.4
    assert abs(gain(0.0)) < 0.2


def test_half_of_the_queries_is_near_the_best() -> None:
    answers = [lesson(seed, 40, 11).answers for seed in range(20)]
    anywhere, near = (
        np.mean([float(values[:, part].mean()) for values in answers])
        for part in (slice(None, 6), slice(6, None))
    )
    assert near > anywhere + 0.5


def test_trials_have_noise_and_answers_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, bool]] = []

    class Noted(SyntheticTasks):
        def values(self, units: torch.Tensor, *, is_noisy: bool = True) -> torch.Tensor:
            asked.append((units.shape[1], is_noisy))
            return super().values(units, is_noisy=is_noisy)

    monkeypatch.setattr(lessons, "SyntheticTasks", Noted)
    lesson(0, 40, 10)
    *trials, answers = asked
    assert all(is_noisy for _, is_noisy in trials) and sum(n for n, _ in trials) == 40
    assert answers == (10, False)


def test_answers_are_on_the_scale_of_the_targets() -> None:
    errors = []
    for seed in range(20):
        drawn = lesson(seed, 40, 20, max_features=3)
        apart = torch.cdist(drawn.queries, drawn.features)
        distance, nearest = apart.min(-1)
        is_near = distance < 0.01
        errors.append((drawn.answers - drawn.targets.gather(1, nearest))[is_near].abs())
    together = torch.cat(errors)
    assert len(together) > 100 and together.median() < 0.1


# ---- other configurations on the same scale


def normal(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_the_scale_gives_trials_their_own_targets(n: int) -> None:
    values = normal(3, n).mul(4.0).round()  # some of them equal
    targets, scale = Scale.of(values)
    torch.testing.assert_close(scale.targets(values), targets)


def test_between_two_trials_it_lies_between_their_targets() -> None:
    values = normal(12).exp().sort().values
    targets, scale = Scale.of(values)
    between = scale.targets(0.7 * values[:-1] + 0.3 * values[1:])
    assert (targets[:-1] < between).all() and (between < targets[1:]).all()


def test_it_grows_without_end_and_without_jumps() -> None:
    values = normal(12)
    targets, scale = Scale.of(values)
    read = scale.targets(torch.linspace(-9, 9, 200_001, dtype=torch.float64))
    assert 0 < read.diff().min() and read.diff().max() < 0.01
    assert read[0] < targets.min() - 1.0 and read[-1] > targets.max() + 1.0


@pytest.mark.parametrize("values", [[0.1], [0.1] * 6])
def test_it_is_finite_where_values_are_the_same(values: list[float]) -> None:
    observed = torch.tensor(values, dtype=torch.float64)
    read = Scale.of(observed)[1].targets(torch.tensor([-1.0, 0.1, 1.0], dtype=torch.float64))
    assert torch.isfinite(read).all() and (read.diff() > 0).all()
    assert read[1].item() == pytest.approx(0.0, abs=1e-12)
