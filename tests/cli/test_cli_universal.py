"""`dre meta-train --synthetic`, and what its file is for."""

import math
import os
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
import torch
from presets import TINY

from dre_plugins import AskTell, DRESampler, Settings
from dre_plugins.engine.contents import ByContent
from dre_plugins.recommend.prior import UniversalFile
from dre_plugins.space import Float
from dre_plugins.transfer.knowledge import prior_from
from dre_plugins.universal import file, training
from dre_plugins.universal.file import UniversalPriorError, digest_of, load, ready, save
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MAX_TRIALS": 6, "N_CELLS": 24, "MIN_TASKS": 2, "N_VALIDATION": 1}.items():
        monkeypatch.setattr(training, name, value)
    monkeypatch.setattr(training, "VALIDATED_TRIALS", (3, 5))


@pytest.mark.usefixtures("quick")
def test_a_file_is_written_that_a_sampler_takes(dre, tmp_path: Path) -> None:
    path, again = tmp_path / "universal.safetensors", tmp_path / "again.safetensors"
    for output in (path, again):
        result = dre("meta-train", "--synthetic", "-o", output, "--steps", 3, "--seed", 1)
        assert "3 steps" in result.stdout and str(output) in result.stdout
    weights, same = load(path).state_dict(), load(again).state_dict()
    assert all(torch.equal(weights[name], same[name]) for name in weights)
    study = optuna.create_study(sampler=DRESampler(seed=0, prior=path))
    study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=8)
    assert study.sampler.stats["universal-prior"] == 2
    assert study.sampler.stats["fallbacks"] == 0 and math.isfinite(study.best_value)


def test_it_needs_no_tasks_and_all_else_does(dre, tmp_path: Path) -> None:
    path = tmp_path / "universal.safetensors"
    said = dre("meta-train", "tasks.json", "--synthetic", "-o", path, code=1).stderr
    assert "none with --synthetic" in said
    said = dre("meta-train", "-o", path, code=1).stderr
    assert "one file of past tasks at least, or --synthetic" in said
    said = dre("meta-train", "--synthetic", "-o", tmp_path / "universal.json", code=1).stderr
    assert ".safetensors" in said


def untrained(path: Path, seed: int) -> Path:
    save(UniversalPrior(UniversalSettings(1, 4, 1), torch.Generator().manual_seed(seed)), path)
    os.utime(path, (0, 0))
    return path


def weights(prior: UniversalPrior) -> list[float]:
    return torch.cat([value.flatten() for value in prior.parameters()]).tolist()


def test_a_file_that_was_trained_anew_is_read_anew(tmp_path: Path) -> None:
    """Its path, its size and its time are those of the one before."""
    path = untrained(tmp_path / "universal.safetensors", 0)
    first = prior_from(path)
    before = weights(ready(path))
    assert ready(path) is ready(path)
    untrained(path, 1)
    second = prior_from(path)
    assert second != first and weights(ready(path)) != before
    assert weights(ready(second.path, second.digest)) == weights(ready(path))


def test_a_study_keeps_to_the_prior_that_it_began_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = untrained(tmp_path / "universal.safetensors", 0)
    preset = replace(TINY, universal_turns=True)

    def study() -> AskTell:
        return AskTell(
            {"x": Float(0.0, 1.0)},
            seed=0,
            prior=prior_from(path),
            settings=Settings(preset=preset),
        )

    def run(study: AskTell) -> list[float]:
        for _ in range(9):
            number, configuration = study.ask()
            study.tell(number, configuration["x"] ** 2)
        return [trial.configuration["x"] for trial in study.trials]

    whole, cut = study(), study()
    expected = run(whole)
    assert whole.stats["universal-prior"] and not whole.stats["fallbacks"]
    untrained(path, 1)
    assert run(cut) == expected and not caplog.records
    path.unlink()
    run(cut)
    assert not cut.stats["fallbacks"] and not caplog.records
    # Another process does not remember it.
    untrained(path, 1)
    monkeypatch.setattr(file, "_READY", ByContent(file._READY._make, 4))
    run(cut)
    said = [one.getMessage() for one in caplog.records]
    assert len(said) == 1 and "another universal prior" in said[0]
    assert not cut.stats["fallbacks"]


def test_a_damaged_file_is_refused_when_the_study_is_set_up(tmp_path: Path) -> None:
    whole = Path(training.__file__).parent / "prior.safetensors"
    assert prior_from(whole) == UniversalFile(str(whole), digest_of(whole))
    content = whole.read_bytes()
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(content.replace(b'\\"width\\":', b'\\"wides\\":', 1))
    assert damaged.read_bytes() != content
    for read in (load, lambda path: DRESampler(prior=path)):
        with pytest.raises(UniversalPriorError, match=str(damaged)):
            read(damaged)
