"""Files from strangers: a clear error or a correct load, never code, never all of the memory."""

import json
import os
import pickle
import random
import shutil
import socket
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from readers import READERS, SPACE, broken, make_prior, metadata

from dre_plugins.engine import ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.transfer import archive, prior_file
from dre_plugins.transfer.metadata import MetadataError
from dre_plugins.transfer.prior import Card, Prior, PriorError

resource = pytest.importorskip("resource")

# More than any of these files needs; importing what reads them comes before.
SPARE_BYTES = 3 * 2**30


@pytest.fixture(autouse=True)
def _limited_memory() -> Any:
    """Let what asks for all of the memory fail, instead of the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * os.sysconf("SC_PAGE_SIZE") + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


# ---- at random (make fuzz tries a hundred times as many)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for kind, reader in READERS.items():
        made[kind] = tmp_path_factory.mktemp("whole") / reader.name
        reader.make(made[kind])
        reader.read(made[kind])
    return made


@pytest.mark.parametrize("kind", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_a_damaged_file_is_read_or_refused(whole: dict[str, Path], kind: str, seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="dre-fuzz-") as folder:
        path = Path(folder, whole[kind].name)
        if whole[kind].is_dir():
            shutil.copytree(whole[kind], path)
            file = rng.choice(sorted(entry for entry in path.rglob("*") if entry.is_file()))
        else:
            file = Path(shutil.copy(whole[kind], path))
        file.write_bytes(broken(file.read_bytes(), rng))
        try:
            READERS[kind].read(path)
        except ValueError as error:
            assert str(error)


# ---- what a stranger would try


class Canary:
    """Leave a file behind when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, int]]:
        return os.mkdir, (self.place, 0o777)


@pytest.mark.parametrize("kind", READERS)
def test_pickles_in_any_place_are_not_loaded(tmp_path: Path, kind: str) -> None:
    reader, trace = READERS[kind], tmp_path / "trace"
    path = tmp_path / reader.name
    reader.make(path)
    files = [entry for entry in path.rglob("*") if entry.is_file()] if path.is_dir() else [path]
    canary = Canary(trace)
    contents = [pickle.dumps(canary, protocol) for protocol in (0, 2, 5)]
    for write in (lambda f: torch.save(canary, f), lambda f: np.save(f, np.array([canary]))):
        with tempfile.TemporaryFile() as file:
            write(file)
            file.seek(0)
            contents.append(file.read())
    for file in files:
        before = file.read_bytes()
        for content in contents:
            file.write_bytes(content)
            try:
                reader.read(path)
            except ValueError:
                pass
            assert not trace.exists()
        file.write_bytes(before)
    reader.read(path)


def test_a_canary_that_is_unpickled_leaves_a_file(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Canary(tmp_path / "trace")))
    assert (tmp_path / "trace").exists()


def with_header(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    changed = change(header)
    text = (changed if isinstance(changed, str) else json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


def first(header: dict[str, Any]) -> dict[str, Any]:
    return header["scorer.0.weight"]


def setting(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        settings = json.loads(header["__metadata__"]["settings"])
        header["__metadata__"]["settings"] = json.dumps({**settings, name: value})

    return change


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "giant shape": lambda h: first(h).update(shape=[2**40, 2**20, 4]),
    "shape that overflows": lambda h: first(h).update(shape=[2**32, 2**32, 1]),
    "negative shape": lambda h: first(h).update(shape=[-1, 4, 4]),
    "other shape": lambda h: first(h).update(shape=[first(h)["shape"][0], 1, 16]),
    "wrong dtype": lambda h: first(h).update(dtype="F64"),
    "unknown dtype": lambda h: first(h).update(dtype="OBJECT"),
    "overlapping tensors": lambda h: first(h).update(
        data_offsets=h["scorer.0.bias"]["data_offsets"]
    ),
    "offsets beyond the end": lambda h: first(h).update(data_offsets=[2**40, 2**41]),
    "offsets that go back": lambda h: first(h).update(data_offsets=[64, 0]),
    "tensor with a path": lambda h: h.update({"../../../tmp/x": h.pop("scorer.0.weight")}),
    "tensor too many": lambda h: h.update(
        x={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    ),
    "tensor twice": lambda h: (
        json.dumps(h)[:-1] + ', "scorer.0.weight": {"dtype": "F32", '
        '"shape": [1], "data_offsets": [0, 4]}}'
    ),
    "nesting bomb": lambda h: '{"__metadata__": ' + '{"a":' * 50_000,
    "nested metadata": lambda h: h["__metadata__"].update(card={"a": {"b": {}}}),
    "nesting bomb in the settings": lambda h: h["__metadata__"].update(settings="[" * 50_000),
    "nesting bomb in the card": lambda h: h["__metadata__"].update(card='{"a":' * 50_000),
    "giant width": setting("hidden", [2**60]),
    "giant depth": setting("hidden", [4] * 100_000),
    "giant ensemble": setting("n_members", 10**18),
    "members without end": setting("n_members", 20_000),
    "layers without end": setting("hidden", [1] * 20_000),
    "endless number": lambda h: h["__metadata__"].update(n_features="9" * 10_000),
    "no metadata": lambda h: h.pop("__metadata__") and None,
    "a list": lambda h: "[]",
    "nothing": lambda h: "",
}


@pytest.mark.parametrize("fault", [*HEADERS, 2**63, 2**40, 2**64 - 1, 0])
def test_a_hostile_header_or_length_of_it_is_refused(tmp_path: Path, fault: str | int) -> None:
    path = tmp_path / "prior.safetensors"
    make_prior(path)
    if isinstance(fault, int):
        path.write_bytes(fault.to_bytes(8, "little") + path.read_bytes()[8:])
    else:
        with_header(path, HEADERS[fault])
    with pytest.raises(PriorError, match=str(path)):
        Prior.load(path)
    assert [*tmp_path.iterdir()] == [path]


# What files of a few kilobytes claimed: members and hidden layers.
CLAIMS = {
    "members": (20_000, (1,)),
    "layers": (1, (1,) * 2_000),
    "members and layers": (400, (1,) * 60),
}


def claiming(path: Path, n_members: int, hidden: tuple[int, ...]) -> None:
    """Write a prior that is whole, of that many weights as its header claims."""
    scorer = ScorerSettings(n_members=n_members, hidden=hidden)
    ensemble = DeepRankingEnsemble.initialise(scorer, SPACE.n_features, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prior_file, "check_size", lambda *_: None)
        Prior(ensemble, SPACE, Card(name="a"), SPACE.canonical(np.full((1, 3), 0.3))).save(path)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_small_file_cannot_claim_a_giant_prior(tmp_path: Path, claim: str) -> None:
    path = tmp_path / "prior.safetensors"
    claiming(path, *CLAIMS[claim])
    with pytest.raises(PriorError, match=r"at most \d+ in a file"):
        Prior.load(path)
    scorer = ScorerSettings(n_members=CLAIMS[claim][0], hidden=CLAIMS[claim][1])
    made = DeepRankingEnsemble.initialise(scorer, SPACE.n_features, seed=0)
    with pytest.raises(ValueError, match=r"at most \d+ in a file"):
        Prior(made, SPACE, Card(name="b"), np.empty((0, 3))).save(tmp_path / "other.safetensors")
    assert [*tmp_path.iterdir()] == [path]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n_members=st.integers(0, 12).map(lambda power: 2**power),
    depth=st.integers(0, 10).map(lambda power: 2**power),
    width=st.integers(0, 8).map(lambda power: 2**power),
)
def test_what_a_prior_claims_is_paid_for_by_its_size(
    n_members: int, depth: int, width: int
) -> None:
    """What is computed for one configuration is bounded, whatever a file of 400 KB claims.

    The scorers that ship compute 1280 numbers, in 4 layers one after the other.
    """
    if n_members * depth * width**2 > 100_000:
        return
    with tempfile.TemporaryDirectory(prefix="dre-fuzz-") as folder:
        path = Path(folder, "prior.safetensors")
        claiming(path, n_members, (width,) * depth)
        try:
            loaded = Prior.load(path)
        except PriorError as error:
            assert "in a file" in str(error)
            return
        assert n_members * depth * width <= 40 * 1280 and depth <= 10 * 4
        assert loaded.ensemble.settings.n_members == n_members


@pytest.mark.timeout(60, method="signal")
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("other", ["pipe", "socket", "device"])
def test_no_reader_waits_for_what_is_no_file(tmp_path, monkeypatch, kind: str, other: str) -> None:
    path = tmp_path / READERS[kind].name
    READERS[kind].make(path)
    READERS[kind].read(path)  # what it imports takes its time
    files = [entry for entry in path.rglob("*") if entry.is_file()] if path.is_dir() else [path]
    for file in files:
        before = file.read_bytes()
        file.unlink()
        if other == "pipe":
            os.mkfifo(file)
        elif other == "device":
            file.symlink_to("/dev/zero")
        else:
            monkeypatch.chdir(file.parent)  # paths of sockets have about a hundred characters
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(file.name)
        try:
            found = READERS[kind].read(path)
        except (ValueError, OSError) as error:
            assert str(error)
        else:  # a folder of an experiment, whose other files are read
            assert path.is_dir() and found is not None
        file.unlink()
        file.write_bytes(before)
    READERS[kind].read(path)


# ---- archives


def repacked(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path) as archive_before:
        entries = {entry: archive_before.read(entry) for entry in archive_before.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive_after:
        for entry_name, kept in {**entries, name: content}.items():
            archive_after.writestr(entry_name, kept)


def array_of(shape: str, descr: str = "'<f8'") -> bytes:
    """Return an array whose header claims more than there is."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\x00" * 64


ARRAYS = {
    "giant shape": array_of("(1000000000000,)"),
    "shape that overflows": array_of(f"({2**33}, {2**33})"),
    "negative shape": array_of("(-5,)"),
    "shape that is code": array_of("(__import__('os').mkdir('trace'),)"),
    "objects": array_of("(3,)", "'|O'"),
    "record of giants": array_of("(1,)", "[('a', '<f8', (1000000000000,))]"),
    "brackets without end": array_of("(" * 3000),
    "header that stops": array_of("(3,)")[:20],
}


@pytest.mark.parametrize("fault", ARRAYS)
def test_hostile_arrays_are_refused(tmp_path, fault: str, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    past = Path("past.npz")
    metadata().save(past)
    repacked(past, "0.npy", ARRAYS[fault])
    with pytest.raises(MetadataError, match=r"past\.npz.*damaged"):
        READERS["metadata.npz"].read(past)
    assert not Path("trace").exists()


def test_an_archive_that_says_it_is_encrypted_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "past.npz"
    metadata().save(path)
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:  # each entry of the directory at the end; its flags are at 8
        content[at + 8] |= 1
        at = content.find(b"PK\x01\x02", at + 4)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="encrypted"):
        READERS["metadata.npz"].read(path)


def test_an_archive_that_unpacks_to_more_than_memory_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED", 2**20)
    path = tmp_path / "past.npz"
    metadata().save(path)
    repacked(path, "0.npy", bytes(2**21))
    assert path.stat().st_size < 2**16
    with pytest.raises(ValueError, match="unpacks to"):
        READERS["metadata.npz"].read(path)
    if "Syne Tune" in READERS:
        folder = tmp_path / "experiment"
        READERS["Syne Tune"].make(folder)
        repacked(folder / "results.csv.zip", "results.csv", b"trial_id\n" + b"0\n" * 2**20)
        found: Any = READERS["Syne Tune"].read(folder)
        assert "unpacks to" in str(found.skipped)
