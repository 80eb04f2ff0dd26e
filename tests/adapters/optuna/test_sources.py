"""Metadata from real Optuna studies in real storages."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import create_trial
from optuna_worker import open_storage, optimized

from dre_plugins import DRESampler
from dre_plugins.adapters.optuna.sources import metadata_from_studies
from dre_plugins.space import Categorical, Condition, Float, Integer, Ordinal
from dre_plugins.transfer.metadata import MetaDataset


def objective(trial: optuna.Trial) -> float:
    """Conditional parameters; every fourth trial crashes, is NaN, or is pruned."""
    kind = trial.suggest_categorical("kind", ["net", "tree"])
    trial.suggest_categorical("only", ["choice"])
    if kind == "net":
        x = trial.suggest_float("lr", 1e-4, 1.0, log=True)
        trial.suggest_categorical("width", [16, 32, 64])
    else:
        x = trial.suggest_int("depth", 1, 8) / 8
    for step in range(3):
        trial.report(x + step, step)
        if trial.number % 4 == 1 and step == 1:
            raise optuna.TrialPruned
    if trial.number % 4 == 2:
        raise RuntimeError("out of memory")
    return math.nan if trial.number % 4 == 3 else x


def one(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0, 1)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'studies.db'}"


def filled(url: str | None, name: str, direction: str = "minimize", n: int = 16) -> optuna.Study:
    study = optuna.create_study(
        storage=url,
        study_name=name,
        direction=direction,
        sampler=optuna.samplers.RandomSampler(seed=0),
    )
    study.optimize(objective, n_trials=n, catch=(RuntimeError,))
    return study


def assert_same(metadata: MetaDataset, expected: MetaDataset) -> None:
    for left, right in zip(metadata, expected, strict=True):
        assert left.name == right.name and left.space == right.space
        np.testing.assert_array_equal(left.units, right.units)
        np.testing.assert_array_equal(left.values, right.values)
        np.testing.assert_array_equal(left.failed, right.failed)


def test_a_storage_gives_its_studies_with_conditions_states_and_rungs(url: str) -> None:
    study = filled(url, "first")
    metadata = metadata_from_studies(url)
    (task,) = metadata
    assert task.name == "first" and url in metadata.source
    assert task.space.domains == {
        "kind": Categorical(("net", "tree")),
        "lr": Float(1e-4, 1.0, "log"),
        "width": Ordinal((16, 32, 64)),
        "depth": Integer(1, 8),
    }
    assert set(task.space.conditions) == {
        Condition("lr", "kind", ("net",)),
        Condition("width", "kind", ("net",)),
        Condition("depth", "kind", ("tree",)),
    }
    assert task.counts() == {"complete": 4, "pruned": 4, "failed": 8}
    assert [*task.rungs] == [0.0, 1.0, 2.0]
    for row, (trial, found) in enumerate(zip(study.trials, task.trials(), strict=True)):
        params = {name: value for name, value in trial.params.items() if name != "only"}
        assert found.configuration == pytest.approx(params)
        if trial.number % 4 == 0:
            assert task.values[row] == -trial.value
        if trial.number % 4 == 1:
            reports = {step: -value for step, value in trial.intermediate_values.items()}
            assert found.rungs == reports and found.value is None


def test_the_sign_follows_the_direction() -> None:
    down, up = metadata_from_studies(
        [filled(None, "down", "minimize"), filled(None, "up", "maximize")]
    )
    np.testing.assert_array_equal(down.values, -up.values)
    np.testing.assert_array_equal(down.rungs[1.0], -up.rungs[1.0])


class Named(IntDistribution):
    """A distribution with a constructor of its own, as freqtrade makes them."""

    def __init__(self, low: int, high: int, name: str, step: int) -> None:
        self.name = name
        super().__init__(low, high, step=step)


def test_values_are_those_of_the_trials_where_ranges_have_moved() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for low, high, step in ((1, 100, 1), (40, 70, 10), (45, 75, 10)):
        for _ in range(5):
            trial = study.ask({"named": Named(low, high, "named", step)})
            rate = trial.suggest_float("rate", 1 / high**3, 1 / low, log=True)
            study.tell(trial, rate * trial.suggest_int("n", low, high, step=step))
    (task,) = metadata_from_studies(study)
    for trial, found in zip(study.trials, task.trials(), strict=True):
        assert found.configuration == pytest.approx(trial.params)


def test_study_storage_url_and_lists_of_them_are_the_same_and_left_alone(url, tmp_path) -> None:
    study = filled(url, "first", n=4)
    before = (tmp_path / "studies.db").read_bytes()
    metadata = metadata_from_studies(url)
    assert_same(metadata, metadata_from_studies(study))
    assert_same(metadata, metadata_from_studies(optuna.storages.RDBStorage(url)))
    assert_same(metadata, metadata_from_studies([study]))
    both = metadata_from_studies([url, filled(None, "other", n=4)])
    assert [task.name for task in both] == ["first", "other"]
    assert (tmp_path / "studies.db").read_bytes() == before


def test_a_journal_storage_can_be_read(tmp_path: Path) -> None:
    storage = open_storage(f"journal:{tmp_path / 'journal.log'}")
    optimized(optuna.samplers.RandomSampler(), one, 3, storage=storage)
    assert metadata_from_studies(storage).tasks[0].n_complete == 3


def test_studies_are_chosen_by_name(url: str) -> None:
    for name in ("a", "b", "c"):
        filled(url, name, n=1)
    for names, found in ((["c", "a"], ["a", "c"]), ("b", ["b"])):
        assert [task.name for task in metadata_from_studies(url, study_names=names)] == found
    with pytest.raises(ValueError, match=r"no studies \['d'\].*'a', 'b', 'c'"):
        metadata_from_studies(url, study_names=["a", "d"])


def test_what_cannot_be_used_is_counted(url: str) -> None:
    optuna.create_study(storage=url, study_name="empty")
    optuna.create_study(storage=url, study_name="two", directions=["minimize"] * 2)
    endless = optuna.create_study(storage=url, study_name="endless")
    without_end = {"x": FloatDistribution(0, math.inf)}
    endless.add_trial(create_trial(params={"x": 1.0}, distributions=without_end, value=1.0))
    running = optuna.create_study(storage=url, study_name="running")
    running.ask({"x": FloatDistribution(0, 1)})
    running.enqueue_trial({"x": 0.5})
    metadata = metadata_from_studies(url)
    assert len(metadata) == 0
    (reason,) = (reason for reason in metadata.skipped if "'x'" in reason)
    assert "inf" in reason
    assert metadata.skipped == {"study with several objectives": 1, "empty study": 2, reason: 1}


def test_a_study_that_is_given_twice_counts_once_and_other_things_are_refused(url: str) -> None:
    first, second = filled(url, "first"), filled(url, "second")
    same_name = filled(None, "first")
    both = metadata_from_studies([first, second])
    given = metadata_from_studies([first, url, first, same_name, second._storage])
    assert [task.name for task in given] == ["first", "second", "first (2)"]
    assert given.skipped["study that is given twice"] == 4
    assert_same(MetaDataset((*given,)[:2]), both)
    with pytest.raises(ValueError, match="past_studies must be a study, a storage"):
        metadata_from_studies({"first": first})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"past_studies has 3"):
        metadata_from_studies([3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"FrozenTrial.{189}…; give the study itself instead of"):
        metadata_from_studies(first.trials)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"got {'k': 'v{190,200}…\.$"):
        metadata_from_studies({"k": "v" * 1000})  # type: ignore[arg-type]


def test_a_trial_that_violates_a_constraint_has_failed() -> None:
    sampler = DRESampler(seed=0, constraints_func=lambda trial: (trial.params["x"] - 0.5,))
    study = optimized(sampler, one, 6)
    (task,) = metadata_from_studies(study)
    assert task.failed.tolist() == [trial.params["x"] > 0.5 for trial in study.trials]
    assert task.counts()["complete"] in range(1, 6)


def test_a_study_of_failures_and_a_study_of_one_trial_are_kept() -> None:
    failed = optimized(optuna.samplers.RandomSampler(), lambda trial: one(trial) * math.nan, 3)
    single = optimized(optuna.samplers.RandomSampler(), one, 1)
    metadata = metadata_from_studies([failed, single])
    assert [task.counts()["failed"] for task in metadata] == [3, 0]
    assert [task.n_complete for task in metadata] == [0, 1]


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_a_missing_file_is_named_and_not_created(tmp_path: Path, scheme: str) -> None:
    with pytest.raises(ValueError, match=r"no\.db.*check the path"):
        metadata_from_studies(f"{scheme}:///{tmp_path / 'no.db'}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["sqlite:///{}/a%20b.db", "sqlite:///file:{}/ab.db?uri=true"])
def test_a_file_may_be_named_in_all_ways_of_a_url(tmp_path: Path, url: str) -> None:
    filled(url.format(tmp_path), "first", n=2)
    assert len(metadata_from_studies(url.format(tmp_path))) == 1


@pytest.mark.parametrize(
    ("content", "error"), [(b"no database" * 100, "DatabaseError"), (b"", "OperationalError")]
)
def test_a_file_without_studies_is_named_and_left_alone(tmp_path, content, error) -> None:
    path = tmp_path / "bad.db"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"bad\.db.*{error}"):
        metadata_from_studies(f"sqlite:///{path}")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("damage", "error"),
    [("DROP TABLE trial_values", "Operational"), ("UPDATE trials SET state = 'X'", "Lookup")],
)
def test_a_damaged_storage_is_named(tmp_path: Path, damage: str, error: str) -> None:
    url = f"sqlite:///{tmp_path / 'bad.db'}"
    filled(url, "first", n=2)
    with closing(sqlite3.connect(tmp_path / "bad.db")) as database, database:
        database.execute(damage)
    with pytest.raises(ValueError, match=rf"bad\.db.*{error}Error"):
        metadata_from_studies(url)


@pytest.mark.parametrize(
    "url",
    [
        "study.db",
        "nosuchbase://me:s3cr3t@host/name",
        "sqlite+nosuchdriver://me:s3cr3t@host/name",
        "nosuchbase://me:s3cr3t@w/it%20h@host/name",
        "nosuchbase://host/name?user=me&password=s3cr3t",
    ],
)
def test_a_bad_url_is_named_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="Cannot read the Optuna storage") as caught:
        metadata_from_studies(url)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert url[:8] in str(caught.value)
    assert ("MetaDataset.load" in str(caught.value)) is ("://" not in url)
