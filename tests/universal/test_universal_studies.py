"""Studies with another universal prior than the shipped network."""

import os
import pickle
from pathlib import Path

import pytest
from presets import FAST
from small_spaces import told
from small_universal import untrained, write

from dre_plugins import AskTell, DRESampler
from dre_plugins.engine.checkpoint import PriorError
from dre_plugins.space import Float
from dre_plugins.study.arguments import prior_from
from dre_plugins.universal.file import SHIPPED, load


def trained(path: Path, seed: int) -> Path:
    write(path, untrained(seed=seed))
    os.utime(path, (0, 0))
    return path


def test_a_study_keeps_to_the_prior_that_it_began_with(tmp_path: Path) -> None:
    """A file that is trained anew has the same path, size and time."""
    path = trained(tmp_path / "universal.safetensors", 0)

    def study() -> AskTell:
        return AskTell({"x": Float(0.0, 1.0)}, seed=0, prior=prior_from(path), settings=FAST)

    def run(study: AskTell) -> list[float]:
        told(study, 9, lambda configuration: configuration["x"] ** 2)
        return [trial.configuration["x"] for trial in study.trials]

    whole, cut, pickled = study(), study(), pickle.dumps(study())
    expected = run(whole)
    assert whole.stats["universal-prior"] and not whole.stats["fallbacks"]
    trained(path, 1)
    assert run(study()) != expected
    path.unlink()
    assert run(cut) == run(pickle.loads(pickled)) == expected
    assert not cut.stats["fallbacks"]


def test_a_damaged_file_is_refused_when_the_study_is_set_up(tmp_path: Path) -> None:
    content = SHIPPED.read_bytes()
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(content.replace(b'\\"width\\":', b'\\"wides\\":', 1))
    assert damaged.read_bytes() != content
    for read in (load, lambda path: DRESampler(prior=path)):
        with pytest.raises(PriorError, match=str(damaged)):
            read(damaged)
