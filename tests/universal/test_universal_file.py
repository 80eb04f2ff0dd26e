"""Files of universal priors: what is read and refused, the shipped one, studies with another."""

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_universal
import torch
from presets import FAST
from scipy.stats import spearmanr
from small_spaces import told
from small_universal import blended, untrained
from torch_defaults import torch_defaults

from dre_plugins import AskTell, DRESampler
from dre_plugins.engine.checkpoint import PriorError
from dre_plugins.space import Float
from dre_plugins.study.arguments import prior_from
from dre_plugins.universal.file import SHIPPED, VERSION, load, load_network, network_in
from dre_plugins.universal.network import UniversalSettings

SIZE = UniversalSettings(n_processes=2, width=4, n_refinements=1)


def write(path: Path, changed: dict[str, Any] | None = None, **header: str | None) -> Path:
    return small_universal.write(path, untrained(SIZE), changed, **header)


def draw(n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, d, generator=generator, dtype=torch.float64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "p.safetensors"


# ---- round trip


def test_what_is_read_says_what_was_written(path: Path) -> None:
    written = untrained(SIZE)
    read = load(write(path))
    features, targets = draw(10, 3).float()[None], torch.linspace(-1, 1, 10)[None]
    ours, weights = written(features, targets)
    theirs, same = read(features, targets)
    assert read.settings == written.settings and torch.equal(weights, same)
    for left, right in zip(ours.posterior(features), theirs.posterior(features), strict=True):
        assert torch.allclose(left, right, atol=1e-9)
    assert not any(weight.requires_grad for weight in read.parameters())


def test_the_defaults_of_a_user_do_not_matter(path: Path) -> None:
    write(path)
    with torch_defaults(device="meta"):
        read = load(path)
    assert {weight.device.type for weight in read.parameters()} == {"cpu"}
    assert torch.equal(read.double().cell[0].weight, untrained(SIZE).double().cell[0].weight)


# ---- what is no universal prior


def test_a_missing_file_is_named(path: Path) -> None:
    for missing in (path, path.parent):
        with pytest.raises(PriorError, match=f"{missing}: not a readable safetensors"):
            load(missing)


# Sizes that cannot be built.
SIZES = [("width", 4.0), ("n_processes", True), ("n_refinements", 1.0), ("width", 10**15)]
SIZES += [("width", 0), ("n_processes", 0), ("n_refinements", -1)]
HEADERS: dict[str, tuple[dict[str, str | None], str]] = {
    "foreign": ({"format": "dre-plugins/prior"}, "format is 'dre-plugins/prior', expected"),
    "without a format": ({"format": None}, "format is None, expected"),
    "newer": ({"version": str(VERSION + 1)}, f"version {VERSION + 1} is newer.*upgrade"),
    "older": ({"version": str(VERSION - 1)}, f"version {VERSION - 1} is older.*train it again"),
    "of no version": ({"version": None}, "damaged header"),
    "of an odd version": ({"version": "one"}, "damaged header"),
    "without settings": ({"settings": None}, "damaged header"),
    "without JSON": ({"settings": "{"}, "damaged header"),
    "too deep": ({"settings": "[" * 50_000}, "damaged header"),
    "with a list": ({"settings": "[1]"}, "damaged header"),
    "with too much": ({"settings": '{"depth": 1}'}, "damaged header.*depth"),
    "of another size": ({"settings": '{"width": 5}'}, "tensors do not fit"),
    "of a huge size": ({"settings": '{"width": 1024, "n_processes": 64}'}, "tensors do not fit"),
    **{
        f"with {name}={value}": (
            {"settings": json.dumps({**asdict(SIZE), name: value})},
            f"damaged header.*{name} must be an integer from .*, got {value}",
        )
        for name, value in SIZES
    },
}


@pytest.mark.parametrize("fault", HEADERS)
def test_a_wrong_header_is_refused(path: Path, fault: str) -> None:
    header, message = HEADERS[fault]
    with pytest.raises(PriorError, match=f"{path}: .*{message}"):
        load(write(path, **header))


TENSORS: dict[str, tuple[dict[str, torch.Tensor | None], str]] = {
    "missing": ({"spread": None}, "do not fit"),
    "too many": ({"more": torch.zeros(2)}, "do not fit"),
    "of another shape": ({"spread": torch.zeros(3)}, "do not fit"),
    "transposed": ({"cell.0.weight": torch.zeros(2, 4)}, "do not fit"),
    **{
        f"of {dtype}": ({"spread": torch.ones(2).to(dtype)}, "")
        for dtype in (torch.int64, torch.bool, torch.complex64)
    },
    "of NaN": ({"spread": torch.tensor([0.0, torch.nan])}, "not finite"),
    "infinite": ({"trust": torch.tensor(torch.inf)}, "not finite"),
}


@pytest.mark.parametrize("fault", TENSORS)
def test_wrong_tensors_are_refused(path: Path, fault: str) -> None:
    changed, message = TENSORS[fault]
    try:
        write(path, changed)
    except KeyError:
        pytest.skip("safetensors 0.4 writes no complex numbers")
    with pytest.raises(PriorError, match=f"{path}: .*{message}"):
        load(path)


def test_a_file_is_recognised_by_its_format(path: Path) -> None:
    assert network_in(path) is None
    network = network_in(str(write(path)))
    assert network is not None and network.cell[0].weight.dtype is torch.float64
    with pytest.raises(PriorError, match="newer"):
        network_in(write(path, version="99"))
    assert network_in(write(path, format="dre-plugins/prior")) is None
    assert network_in(write(path, format=None)) is None


# ---- the one that ships with the package


def test_the_shipped_one_is_small_and_read_once() -> None:
    assert SHIPPED.stat().st_size < 2 * 2**20
    prior = load_network()
    assert prior is load_network() and not any(
        weight.requires_grad for weight in prior.parameters()
    )
    assert {weight.dtype for weight in prior.parameters()} == {torch.float64}


SMOOTH: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bowl": lambda x: -(x - torch.tensor([0.3, 0.6, 0.5])).square().sum(-1),
    "wave": lambda x: torch.sin(4 * x[:, 0]) + x[:, 1].square() - x[:, 2],
    "one parameter of three": lambda x: torch.cos(5 * x[:, 1]),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_the_shipped_one_predicts_smooth_functions(name: str) -> None:
    observed, unknown = draw(25, 3), draw(100, 3, seed=1)
    values, truth = SMOOTH[name](observed), SMOOTH[name](unknown)
    targets = blended(values)
    processes, weights = load_network()(observed[None], targets[None])
    means, variances = processes.posterior(unknown[None])
    shares = weights.exp()[..., None]
    mean = (shares * means).sum(1)[0]
    spread = ((shares * (variances + means.square())).sum(1)[0] - mean.square()).sqrt()
    places = values.argsort()
    expected = np.interp(truth, values[places], targets[places])
    errors = (mean - torch.from_numpy(expected)).abs()
    assert spearmanr(mean, truth).statistic > 0.9
    assert (errors < 2 * spread).float().mean() > 0.8


# ---- studies with another one


def test_a_study_keeps_to_the_prior_that_it_began_with(path: Path) -> None:
    """A file that is trained anew has the same path, size and time."""

    def train(seed: int) -> None:
        small_universal.write(path, untrained(SIZE, seed))
        os.utime(path, (0, 0))

    def study() -> AskTell:
        return AskTell({"x": Float(0.0, 1.0)}, seed=0, prior=prior_from(path), settings=FAST)

    def run(study: AskTell) -> list[float]:
        told(study, 9, lambda configuration: configuration["x"] ** 2)
        return [trial.configuration["x"] for trial in study.trials]

    train(0)
    whole, cut, pickled = study(), study(), pickle.dumps(study())
    expected = run(whole)
    assert whole.stats["universal-prior"] and not whole.stats["fallbacks"]
    train(1)
    assert run(study()) != expected
    path.unlink()
    assert run(cut) == run(pickle.loads(pickled)) == expected
    assert not cut.stats["fallbacks"]


def test_a_damaged_file_is_refused_when_the_study_is_set_up(path: Path) -> None:
    content = SHIPPED.read_bytes()
    path.write_bytes(content.replace(b'\\"width\\":', b'\\"wides\\":', 1))
    assert path.read_bytes() != content
    for read in (load, lambda path: DRESampler(prior=path)):
        with pytest.raises(PriorError, match=str(path)):
            read(path)
