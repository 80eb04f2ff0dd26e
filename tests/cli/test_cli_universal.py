"""`dre meta-train --synthetic`, and what its file is for."""

import math
from pathlib import Path

import optuna
import pytest
import torch

from dre_plugins import DRESampler
from dre_plugins.recommend.prior import UniversalFile
from dre_plugins.transfer.knowledge import prior_from
from dre_plugins.universal import training
from dre_plugins.universal.file import UniversalPriorError, load

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


def test_a_damaged_file_is_refused_when_the_study_is_set_up(tmp_path: Path) -> None:
    whole = Path(training.__file__).parent / "prior.safetensors"
    assert prior_from(whole) == UniversalFile(str(whole))
    content = whole.read_bytes()
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(content.replace(b'\\"width\\":', b'\\"wides\\":', 1))
    assert damaged.read_bytes() != content
    for read in (load, lambda path: DRESampler(prior=path)):
        with pytest.raises(UniversalPriorError, match=str(damaged)):
            read(damaged)
