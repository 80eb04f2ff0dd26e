"""Tables of Syne Tune's blackbox repository."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dre_bench.runs import Sources
from dre_bench.table_sources import blackboxes
from dre_bench.tables import tables_of
from dre_plugins.space import Categorical, Float, Ordinal

FIDELITIES = np.array([1, 9, 3])  # in no order: the second is the highest
METRICS = ["val_accuracy", "metric_elapsed_time", "temperature"]


def blackbox_tasks():
    """Two seeds, three fidelities, three metrics; hyper-parameters of four kinds."""
    cs = pytest.importorskip("syne_tune.config_space")
    pandas = pytest.importorskip("pandas")
    space = {
        "rate": cs.loguniform(1e-4, 1.0),
        "layers": cs.choice(["True", "2", "3"]),
        "dropout": cs.finrange(0.0, 0.6, 3),
        "units": cs.logfinrange(16, 512, 6, cast_int=True),
    }
    table = pandas.DataFrame(
        {
            "rate": [0.001, 0.1, 1.0, 0.0001],
            "layers": ["True", "2", "3", "2"],
            "dropout": [0.0, 0.3, 0.6, 0.3],
            "units": [16, 32, 512, 256],
        }
    )
    rng = np.random.default_rng(0)
    return {
        f"task{number}": {
            "hyperparameters": table,
            "configuration_space": space,
            "fidelity_space": {"epoch": cs.randint(1, 9)},
            "objectives_evaluations": rng.random((4, 2, 3, 3)).astype(np.float32),
            "fidelity_values": FIDELITIES,
            "objectives_names": METRICS,
        }
        for number in range(11)
    }


@pytest.fixture
def repository(monkeypatch):
    """An entry "lcbench" that needs neither the network nor what reads its files."""
    tasks = blackbox_tasks()
    module = SimpleNamespace(
        blackbox_list=lambda: ["lcbench", "fcnet"],
        load_blackbox=lambda _: {
            key: SimpleNamespace(**content) for key, content in tasks.items()
        },
    )
    monkeypatch.setitem(sys.modules, "syne_tune.blackbox_repository", module)
    return tasks


def final_means(tasks, task, metric):
    return tasks[task]["objectives_evaluations"][:, :, 1, METRICS.index(metric)].mean(axis=1)


def check_entry(tables, tasks):
    assert tables.tasks("test") == ["task0", "task10"]
    assert tables.tasks("validation") == ["task5"]
    assert len(tables.metadata("train")) == 8
    table = tables.table("task10", 0)
    np.testing.assert_allclose(table.values, final_means(tasks, "task10", "val_accuracy"))
    assert table.space.domains == {
        "rate": Float(1e-4, 1.0, "log"),
        "layers": Categorical(("True", "2", "3")),
        "dropout": Ordinal((0.0, 0.3, 0.6), "linear"),
        "units": Ordinal((16, 32, 64, 128, 256, 512), "log"),
    }
    configuration = table.space.to_configuration(table.units[1])
    assert configuration == {
        **{"rate": pytest.approx(0.1), "layers": "2", "dropout": pytest.approx(0.3)},
        "units": 32,
    }


def test_blackboxes_have_the_means_of_seeds_at_the_highest_fidelity(repository):
    check_entry(tables_of(Sources(), "syne-tune:lcbench"), repository)


def test_metrics_are_turned_so_that_larger_is_better(repository):
    time = final_means(repository, "task0", "metric_elapsed_time")
    for name, values in {
        "lcbench/metric_elapsed_time": -time,
        "lcbench/metric_elapsed_time/max": time,
        "lcbench/temperature/min": -final_means(repository, "task0", "temperature"),
        "lcbench//min": -final_means(repository, "task0", "val_accuracy"),
    }.items():
        np.testing.assert_allclose(
            blackboxes.read(Sources(), name).table("task0", 0).values, values
        )


@pytest.mark.parametrize(
    ("metric", "mode"),
    [
        ("val_balanced_accuracy", "max"),
        ("WEIGHTED_AVG_AUC_DOWNSTREAM_PERFORMANCE", "max"),
        ("valid_r2", "max"),
        ("val_cross_entropy", "min"),
        ("training_runtime", "min"),
        ("metric_n_params", "min"),
    ],
)
def test_names_of_metrics_tell_which_values_are_good(metric, mode):
    assert blackboxes.mode_of("entry", metric) == mode


def test_a_metric_that_does_not_tell_must_be_told(repository):
    message = "'temperature' are good: write lcbench/temperature/max or lcbench/temperature/min"
    with pytest.raises(ValueError, match=message):
        blackboxes.read(Sources(), "lcbench/temperature")
    with pytest.raises(ValueError, match="'accuracy_loss' are good"):
        blackboxes.mode_of("entry", "accuracy_loss")
    for name, message in {
        "lcbench/speed": "no metric 'speed'; it has val_accuracy, metric_elapsed_time",
        "lcbench/temperature/up": "mode must be max or min, got 'up'",
        "lcbench/temperature/max/min": "mode must be max or min, got 'max/min'",
        "other": "no blackbox 'other'; it has lcbench, fcnet",
    }.items():
        with pytest.raises(ValueError, match=message):
            blackboxes.read(Sources(), name)


def test_rows_that_do_not_fit_the_search_space_are_left_out_with_a_warning(repository):
    for task in repository.values():
        task["hyperparameters"] = task["hyperparameters"].assign(units=[16, 32, 512, 17])
    tables = blackboxes.read(Sources(), "lcbench")
    with pytest.warns(UserWarning, match=r"tables lack .*'units', such as 17.*: 2"):
        assert tables.tasks("test") == ["task0", "task10"]
    expected = final_means(repository, "task0", "val_accuracy")[:3]
    np.testing.assert_allclose(tables.table("task0", 0).values, expected)


def test_what_the_repository_needs_is_said(repository, monkeypatch):
    def load(_):
        raise FileNotFoundError("check your internet connection")

    monkeypatch.setattr(sys.modules["syne_tune.blackbox_repository"], "load_blackbox", load)
    with pytest.raises(ValueError, match=r"cannot be downloaded or read: .*check your internet"):
        blackboxes.read(Sources(), "lcbench")
    monkeypatch.setitem(sys.modules, "syne_tune.blackbox_repository", None)
    with pytest.raises(ValueError, match=r"pip install .*huggingface_hub"):
        blackboxes.read(Sources(), "lcbench")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # how Syne Tune uses pandas
def test_an_entry_that_syne_tune_has_written_is_read(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    pytest.importorskip("fastparquet")
    from syne_tune.blackbox_repository import blackbox_tabular, repository as stored

    tasks = blackbox_tasks()
    made = {key: blackbox_tabular.BlackboxTabular(**content) for key, content in tasks.items()}
    blackbox_tabular.serialize(made, tmp_path / "lcbench")
    monkeypatch.setattr(stored, "repository_path", tmp_path)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    check_entry(blackboxes.read(Sources(), "lcbench"), tasks)
