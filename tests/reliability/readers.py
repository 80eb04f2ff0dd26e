"""Files of every kind that the package reads, made small and whole, for tests that break them."""

import json
import random
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from small_universal import untrained, write

from dre_plugins.engine import ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.space import Categorical, Float, Integer, SearchSpace
from dre_plugins.transfer import training_state
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Card, Prior
from dre_plugins.transfer.sources.tables import from_table
from dre_plugins.transfer.training_state import TrainingState
from dre_plugins.universal import file as universal

SPACE = SearchSpace({"x": Float(0.0, 1.0), "n": Integer(1, 9), "kind": Categorical(["a", "b"])})
SCORER = ScorerSettings(n_members=2, hidden=(4,))


class Reader(NamedTuple):
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    name: str


def ensemble(seed: int = 0, space: SearchSpace = SPACE) -> DeepRankingEnsemble:
    return DeepRankingEnsemble.initialise(SCORER, space.n_features, seed=seed)


def make_prior(path: Path, seed: int = 0, space: SearchSpace = SPACE, **card: Any) -> None:
    favourites = space.canonical(np.full((1, space.n_parameters), 0.3))
    Prior(ensemble(seed, space), space, Card(**{"name": str(seed), **card}), favourites).save(path)


def metadata() -> MetaDataset:
    units = SPACE.canonical(np.random.default_rng(0).random((6, 3)))
    failed = np.arange(6) == 5
    values = np.where(failed, np.nan, units[:, 0])
    rungs = {1.0: np.where(failed, np.nan, 1.0)}
    return MetaDataset.of([Task(name, SPACE, units, values, failed, rungs) for name in "ab"])


def training(seed: int = 0) -> TrainingState:
    weights = [ensemble(seed + place).parameters for place in range(3)]
    return TrainingState(*weights, torch.Generator().manual_seed(seed))


def make_csv(path: Path) -> None:
    rows = [f"{n / 7},{n},{'ab'[n % 2]},{n * 0.5}" for n in range(8)]
    path.write_text("\n".join(["x,n,kind,y", *rows]))


def make_space(path: Path) -> None:
    path.write_text(json.dumps(SPACE.to_dict()))


def read_space(path: Path) -> object:
    from dre_plugins.transfer import archive

    try:
        return SearchSpace.from_dict(archive.read(path))
    except archive.DAMAGES as error:  # as all who call it do
        raise ValueError(str(error)) from error


def make_ray(path: Path) -> None:
    """Write what Ray Tune writes, as far as it is read."""
    states = []
    for number in range(3):
        name = f"train_{number}"
        folder = path / name
        folder.mkdir(parents=True)
        config = {"x": number / 3, "nested": {"n": number}}
        (folder / "params.json").write_text(json.dumps(config))
        reports = [{"loss": 1.0 / n, "training_iteration": n, "done": n == 3} for n in (1, 2, 3)]
        (folder / "result.json").write_text("\n".join(map(json.dumps, reports)))
        states.append([json.dumps({"relative_logdir": name, "status": "TERMINATED"}), "{}"])
    (path / "experiment_state-2026.json").write_text(json.dumps({"trial_data": states}))


def read_ray(path: Path) -> object:
    from dre_plugins.adapters.ray_tune.sources import metadata_from_results

    return metadata_from_results(path, metric="loss", mode="min")


def make_syne_tune(path: Path) -> None:
    """Write what Syne Tune writes, as far as it is read."""
    from syne_tune.config_space import config_space_to_json_dict, finrange, loguniform, randint

    path.mkdir(parents=True)
    space = {"lr": loguniform(1e-3, 1), "n": randint(1, 9), "m": finrange(0.1, 0.9, 9)}
    state = {
        "metric_names": ["loss"],
        "metric_mode": "min",
        "config_space": json.dumps(config_space_to_json_dict(space)),
        "scheduler_kwargs": {"time_attr": "epoch"},
    }
    (path / "metadata.json").write_text(json.dumps(state))
    head = "trial_id,epoch,loss,config_lr,config_n,config_m,st_status,st_decision"
    rows = [f"{n // 2},{n % 2 + 1},{1 / (n + 1)},0.1,{n % 9 + 1},0.1,,CONTINUE" for n in range(8)]
    with zipfile.ZipFile(path / "results.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("results.csv", "\n".join([head, *rows]))


def read_syne_tune(path: Path) -> MetaDataset:
    from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments

    return metadata_from_experiments(path)


READERS = {
    "prior": Reader(make_prior, Prior.load, "a.safetensors"),
    "training": Reader(
        lambda path: training_state.save(path, training(), {"plan": 1}),
        lambda path: training_state.load(path, training(), {"plan": 1}),
        "a.safetensors",
    ),
    "universal prior": Reader(
        lambda path: write(path, untrained()), universal.load, "a.safetensors"
    ),
    "metadata.json": Reader(lambda path: metadata().save(path), MetaDataset.load, "a.json"),
    "metadata.npz": Reader(lambda path: metadata().save(path), MetaDataset.load, "a.npz"),
    "CSV": Reader(make_csv, lambda path: from_table(path, value="y"), "a.csv"),
    "space": Reader(make_space, read_space, "a.json"),
}
if find_spec("ray") is not None:
    READERS["Ray Tune"] = Reader(make_ray, read_ray, "experiment")
if find_spec("syne_tune") is not None:
    READERS["Syne Tune"] = Reader(make_syne_tune, read_syne_tune, "experiment")


# ---- breaking them

BOMBS = ("[" * 100_000, '{"a":' * 100_000, "9" * 5_000, "1e999", '"' + "x" * 10_000, "\\ud800")
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 10**30, 1e308, -1e-320, float("nan"), float("inf")),
    *("", "a", "../../../../tmp/x", "x" * 1000, "inf", "\x00", "Ω"),
    *([], {}, [[]], [[[[]]]], [None], {"": None}, {"array": "0"}, {"tuple": [1]}, {"float": "x"}),
    *({"dict": [[1, 2]]}, [1, "a", None], {"kind": "Float", "low": 1, "high": 0}),
)


def broken(content: bytes, rng: random.Random) -> bytes:
    """Return a file that is damaged at random, as its format allows or against it."""
    for _ in range(rng.randint(1, 3)):
        content = rng.choice((_cut, _flipped, _spliced, _overwritten, _retold, _retold))(
            content, rng
        )
    return content


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randint(0, len(content))]


def _flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _spliced(content: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(content))
    piece = rng.choice((rng.choice(BOMBS).encode(), rng.randbytes(8), content[-64:]))
    return content[:at] + piece + content[at:]


def _overwritten(content: bytes, rng: random.Random) -> bytes:
    """Write a large number where there may be a length."""
    at = rng.randint(0, len(content))
    return content[:at] + rng.choice((b"\xff" * 8, b"\x00" * 8, b"\x7f" * 4)) + content[at + 8 :]


def _retold(content: bytes, rng: random.Random) -> bytes:
    """Change an entry of JSON, also of the header of a safetensors file."""
    start = 0
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        size = int.from_bytes(content[:8], "little")
        try:
            tree, start = json.loads(content[8 : 8 + size]), 8 + size
        except (ValueError, RecursionError):
            return _flipped(content, rng)
    try:
        text = json.dumps(_changed(tree, rng)).encode()
    except RecursionError:  # changed into a bomb before
        return _flipped(content, rng)
    return len(text).to_bytes(8, "little") + text + content[start:] if start else text


def _changed(tree: Any, rng: random.Random) -> Any:
    if isinstance(tree, str) and tree[:1] in "{[" and rng.random() < 0.8:
        try:
            return json.dumps(_changed(json.loads(tree), rng))
        except (ValueError, RecursionError):
            return rng.choice(ODD)
    if not isinstance(tree, (dict, list)) or not tree or rng.random() < 0.15:
        return rng.choice(ODD)
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    key, value = rng.choice(items)
    if rng.random() < 0.1:
        if isinstance(tree, dict):
            return {k: v for k, v in tree.items() if k != key} | {str(rng.choice(ODD)): value}
        return [*tree, value] if rng.random() < 0.5 else tree[1:]
    if isinstance(tree, dict):
        return {**tree, key: _changed(value, rng)}
    return [*tree[:key], _changed(value, rng), *tree[key + 1 :]]
