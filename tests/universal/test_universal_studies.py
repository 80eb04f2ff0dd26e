"""Studies with another universal prior than the shipped network."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from presets import TINY
from small_spaces import told
from small_universal import untrained, write

from dre_plugins import AskTell, DRESampler, Settings
from dre_plugins.engine.files import ContentCache
from dre_plugins.recommend.loading import prior_from
from dre_plugins.recommend.prior import UniversalFile
from dre_plugins.space import Float
from dre_plugins.universal import file
from dre_plugins.universal.file import UniversalPriorError, digest_of, load, load_network
from dre_plugins.universal.network import UniversalPrior


def trained(path: Path, seed: int) -> Path:
    write(path, untrained(seed=seed))
    os.utime(path, (0, 0))
    return path


def weights(prior: UniversalPrior) -> list[float]:
    return torch.cat([value.flatten() for value in prior.parameters()]).tolist()


def test_a_file_that_was_trained_anew_is_read_anew(tmp_path: Path) -> None:
    """Its path, its size and its time are those of the one before."""
    path = trained(tmp_path / "universal.safetensors", 0)
    first = prior_from(path)
    before = weights(load_network(path))
    assert load_network(path) is load_network(path)
    trained(path, 1)
    second = prior_from(path)
    assert second != first and weights(load_network(path)) != before
    assert weights(load_network(second.path, second.digest)) == weights(load_network(path))


def test_a_study_keeps_to_the_prior_that_it_began_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trained(tmp_path / "universal.safetensors", 0)
    preset = replace(TINY, universal_turns=True)

    def study() -> AskTell:
        return AskTell(
            {"x": Float(0.0, 1.0)},
            seed=0,
            prior=prior_from(path),
            settings=Settings(preset=preset),
        )

    def run(study: AskTell) -> list[float]:
        told(study, 9, lambda configuration: configuration["x"] ** 2)
        return [trial.configuration["x"] for trial in study.trials]

    whole, cut = study(), study()
    expected = run(whole)
    assert whole.stats["universal-prior"] and not whole.stats["fallbacks"]
    trained(path, 1)
    assert run(cut) == expected and not caplog.records
    path.unlink()
    run(cut)
    assert not cut.stats["fallbacks"] and not caplog.records
    # Another process does not remember it.
    trained(path, 1)
    monkeypatch.setattr(file, "_READY", ContentCache(file._READY._make, 4))
    run(cut)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1 and "another universal prior" in messages[0]
    assert not cut.stats["fallbacks"]


def test_a_damaged_file_is_refused_when_the_study_is_set_up(tmp_path: Path) -> None:
    whole = file.SHIPPED
    assert prior_from(whole) == UniversalFile(str(whole), digest_of(whole))
    content = whole.read_bytes()
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(content.replace(b'\\"width\\":', b'\\"wides\\":', 1))
    assert damaged.read_bytes() != content
    for read in (load, lambda path: DRESampler(prior=path)):
        with pytest.raises(UniversalPriorError, match=str(damaged)):
            read(damaged)
