from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import optuna
import pytest
import torch
from safetensors import safe_open

from dre_bench.universal import training
from dre_bench.universal.lessons import Lesson, draw_lesson
from dre_bench.universal.training import (
    DOUBT,
    LAST_RATE,
    N_WARM_UP,
    NOISE_SHARE,
    UniversalTrainingSettings,
    loss,
    meta_train_universal,
    validated,
    validation_lessons,
)
from dre_plugins import DRESampler
from dre_plugins.universal.file import load
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

SIZE = UniversalSettings(n_processes=2, width=8, n_refinements=1)
SHORT = UniversalTrainingSettings(n_steps=30, learning_rate=0.05, max_features=4)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def _short_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MAX_TRIALS", 12)
    monkeypatch.setattr(training, "N_CELLS", 60)


def untrained(seed: int = 0) -> UniversalPrior:
    return training.initial(SIZE, seed)


def small_lessons() -> list[Lesson]:
    rng = np.random.default_rng(5)
    return [draw_lesson(rng, 4, n_trials, 16, 4) for n_trials in (3, 6, 10, 16) * 3]


def test_training_lowers_the_loss_on_lessons_it_has_not_seen() -> None:
    lessons = small_lessons()
    trained = meta_train_universal(SIZE, SHORT, seed=0)
    assert validated(trained, lessons) < validated(untrained(), lessons) - 0.15


def test_the_seed_alone_decides() -> None:
    settings = UniversalTrainingSettings(n_steps=3, max_features=4)
    first, same, other = (
        meta_train_universal(SIZE, settings, seed=seed).state_dict() for seed in (1, 1, 2)
    )
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["cell.0.weight"], other["cell.0.weight"])


def test_a_file_keeps_the_weights_in_float32_and_a_note(tmp_path: Path) -> None:
    training.save(untrained().double(), tmp_path / "p.safetensors", note="30 steps")
    read = load(tmp_path / "p.safetensors").state_dict()
    assert all(torch.equal(value, read[name]) for name, value in untrained().state_dict().items())
    with safe_open(tmp_path / "p.safetensors", framework="pt") as file:
        assert file.metadata()["note"] == "30 steps"


def test_before_training_weights_are_those_of_the_seed() -> None:
    first, same, other = (untrained(seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["cell.0.weight"], other["cell.0.weight"])
    assert first["of_task.2.weight"].abs().max() < 0.1 < first["cell.0.weight"].abs().max()


def test_every_weight_is_trained() -> None:
    trained = dict(meta_train_universal(SIZE, SHORT, seed=0).named_parameters())
    for name, before in untrained().named_parameters():
        assert not torch.equal(before, trained[name]), name
        assert torch.isfinite(trained[name]).all()


def test_a_step_without_a_finite_gradient_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "loss", lambda *arguments: loss(*arguments) * math.nan)
    settings = UniversalTrainingSettings(n_steps=2, max_features=4)
    trained = meta_train_universal(SIZE, settings, seed=0).state_dict()
    assert all(
        torch.equal(trained[name], weight) for name, weight in untrained().state_dict().items()
    )


def test_each_step_has_a_lesson_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Lesson] = []
    monkeypatch.setattr(
        training, "loss", lambda *arguments: seen.append(arguments[1]) or loss(*arguments)
    )
    meta_train_universal(SIZE, UniversalTrainingSettings(12, max_features=4), seed=0)
    sizes = {lesson.targets.shape[1] for lesson in seen}
    assert len(seen) == 12 and len(sizes) > 3
    assert min(sizes) >= training.MIN_TRIALS and max(sizes) <= training.MAX_TRIALS
    assert len({float(lesson.answers.sum()) for lesson in seen}) == 12


def test_the_loss_is_the_density_of_the_mixture() -> None:
    lesson, prior = small_lessons()[1], untrained()
    processes, weights = prior(lesson.features, lesson.targets)
    means, variances = processes.posterior(lesson.queries)
    doubts = variances + DOUBT + NOISE_SHARE * processes.hypotheses.noises.exp()[..., None]
    mixture = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(logits=weights[:, None].expand(-1, 16, -1)),
        torch.distributions.Normal(means.mT, doubts.sqrt().mT),
    )
    expected = -mixture.log_prob(lesson.answers.double()).mean()
    torch.testing.assert_close(loss(prior, lesson), expected)


def test_a_wrong_answer_costs_more() -> None:
    lesson, prior = small_lessons()[2], untrained()
    right = Lesson(lesson.features, lesson.targets, lesson.features, lesson.targets)
    wrong = Lesson(lesson.features, lesson.targets, lesson.features, -lesson.targets)
    assert validated(prior, [right]) < validated(prior, [wrong]) - 1.0
    both = (validated(prior, [right]) + validated(prior, [wrong])) / 2
    assert validated(prior, [right, wrong]) == pytest.approx(both)


def test_validation_lessons_are_the_same_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "N_VALIDATION", 1)
    lessons, again = validation_lessons(4), validation_lessons(4)
    assert [lesson.targets.shape[1] for lesson in lessons] == [*training.VALIDATED_TRIALS]
    for lesson, same in zip(lessons, again, strict=True):
        assert torch.equal(lesson.answers, same.answers)


# ---- settings


def test_the_rate_rises_and_then_falls() -> None:
    settings = UniversalTrainingSettings(n_steps=1000, learning_rate=0.01)
    rates = np.array([settings.rate(step) for step in range(1000)])
    top = int(rates.argmax())
    assert N_WARM_UP - 10 < top < N_WARM_UP + 10
    assert (np.diff(rates[: top + 1]) > 0).all() and (np.diff(rates[top:]) < 0).all()
    assert rates[0] < 0.02 * 0.01 and rates[top] == pytest.approx(0.01, rel=0.05)
    assert rates[-1] == pytest.approx(LAST_RATE, rel=0.01)
    assert rates[500] == pytest.approx(0.005 + LAST_RATE)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_steps", 0), ("learning_rate", 0.0), ("learning_rate", math.nan), ("max_features", 1)],
)
def test_a_wrong_setting_is_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*, got {value}"):
        UniversalTrainingSettings(**{name: value})


# ---- the command


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MAX_TRIALS": 6, "N_CELLS": 24, "MIN_TASKS": 2, "N_VALIDATION": 1}.items():
        monkeypatch.setattr(training, name, value)
    monkeypatch.setattr(training, "VALIDATED_TRIALS", (3, 5))


@pytest.mark.usefixtures("quick")
def test_a_file_is_written_that_a_sampler_takes(bench, tmp_path: Path) -> None:
    path, again = tmp_path / "universal.safetensors", tmp_path / "again.safetensors"
    for output in (path, again):
        result = bench("train-universal", "-o", output, "--steps", 3, "--seed", 1)
        assert "3 steps" in result.stdout and str(output) in result.stdout
    weights, same = load(path).state_dict(), load(again).state_dict()
    assert all(torch.equal(weights[name], same[name]) for name in weights)
    study = optuna.create_study(sampler=DRESampler(seed=0, prior=path))
    study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=8)
    assert study.sampler.stats["universal-prior"] == 5
    assert study.sampler.stats["fallbacks"] == 0 and math.isfinite(study.best_value)
    assert ".safetensors" in bench("train-universal", "-o", tmp_path / "a.json", code=1).stderr
