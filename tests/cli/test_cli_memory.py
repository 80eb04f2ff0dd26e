"""`dre memory`."""

import shutil
from unittest.mock import Mock

import pytest
from remembered import SPACE, files_of, header, loss, tune, write_study

from dre_plugins import Memory, MetaDataset
from dre_plugins.memory import records, selection
from dre_plugins.memory.records import Recorder
from dre_plugins.memory.selection import MAX_STUDIES
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import Task


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("DRE_MEMORY", str(tmp_path / "memory"))
    memory = Memory.of(None)
    write_study(memory, "wine", 12)
    write_study(memory, "iris", 7, space=SearchSpace({"x": Float(0.0, 1.0)}))
    return memory


BARE = Trial({}, TrialState.COMPLETE, 1.0)


def words(result):
    return " ".join(result.output.split())


def figures(dre):
    rows = [row.split("│") for row in dre("memory", "stats").output.splitlines() if "│" in row]
    return {row[1].strip(): row[2].strip() for row in rows}


def test_list(dre, memory, tmp_path):
    rows = dre("memory", "list").output.splitlines()
    assert [row.split("│")[2].strip() for row in rows if "tests" in row] == ["iris", "wine"]
    assert "lr, layers" in words(dre("memory", "list"))
    filtered = dre("memory", "list", "--parameter", "lr").output
    assert "wine" in filtered and "iris" not in filtered
    said = dre("memory", "list", "--parameter", "Lr").stderr
    assert "no study has the parameters ['Lr']" in said
    printed = dre("memory", "list", "--memory", tmp_path / "none")
    assert "wine" not in printed.output
    assert f"there are no studies in {tmp_path / 'none'}" in printed.stderr
    said = dre("memory", "list", "--memory", "", code=1).stderr
    assert said == "dre: memory must be True, False, None, or the path of a folder, got ''.\n"
    write_study(memory, ":smile: [red]x", 2)
    assert ":smile: [red]x" in words(dre("memory", "list"))


def test_long_names_are_shown_whole(dre, memory):
    """As `dre memory show` and `forget` take them."""
    write_study(memory, name := f"experiment-{'0123456789' * 9}", 2)
    rows = [row.split("│") for row in dre("memory", "list").output.splitlines() if "│" in row]
    assert name in "".join(row[2].strip() for row in rows)


def test_a_damaged_record_is_named(dre, memory):
    (memory.records / "x.jsonl").write_bytes(b"\x00")
    for command in ("list", "stats"):
        assert f"{memory.records / 'x.jsonl'} is damaged" in dre("memory", command).stderr
    assert figures(dre)["damaged records"] == "1"


def test_show(dre, memory):
    tune(memory, 1, name="new", framework="syne-tune")
    text = dre("memory", "show", "new").output
    assert "what was maximised has a minus" in text and "1 complete" in text and "log" in text
    assert "wine wine" in text  # where it has learnt from: identity and name are the same here
    text = dre("memory", "show", "wine").output
    assert "12 complete" in text and "no study" in text and "best value" in text
    study = tune(memory, 0, name="without")
    study.tell(study.ask()[0], None)
    text = dre("memory", "show", "without").output
    assert "1 failed" in text and "best value" not in text


def test_forget_goes_by_whole_names(dre, memory):
    assert "no study 'beer'" in dre("memory", "show", "beer", code=1).stderr
    dre("memory", "forget", "wine", "beer", "--yes", code=1)
    assert len(files_of(memory)) == 2
    assert "Forgot 1 study with 12 trials" in words(dre("memory", "forget", "wine", "--yes"))
    assert [path.name[:4] for path in files_of(memory)] == ["iris"]
    for name in ("6", "6f00aa", "6f11bb"):  # here identities are names
        write_study(memory, name, 2)
    assert "Forgot 1 study" in words(dre("memory", "forget", "6", "--yes"))
    Recorder(memory.records, header("6f22cc", "")).write(0, BARE, SearchSpace({}))
    for word in ("6f00", ""):  # "$NAME" of a script that has set no NAME
        dre("memory", "forget", word, "--yes", code=1)
    assert len(files_of(memory)) == 4


def test_a_study_without_parameters_can_be_forgotten(dre, memory, tmp_path):
    Recorder(memory.records, header("bare", "bare")).write(0, BARE, SearchSpace({}))
    assert "bare" in dre("memory", "list").output
    exported = dre("memory", "export", "-o", tmp_path / "tasks.json")
    assert "1 × study without parameters" in words(exported)
    dre("memory", "forget", "bare", "--yes")
    assert len(files_of(memory)) == 2


@pytest.mark.parametrize("answer", ["n\n", "\n", "", None, "y\n"])
def test_forget_asks_before(memory, answer, monkeypatch):
    """An empty text is an input that ends; None is one that is closed."""
    typer, testing = pytest.importorskip("typer"), pytest.importorskip("typer.testing")
    from dre_plugins.cli.app import app

    if answer is None:
        monkeypatch.setattr(typer, "confirm", Mock(side_effect=RuntimeError("lost sys.stdin")))
    asked = testing.CliRunner().invoke(app, ["memory", "forget", "wine"], input=answer)
    assert answer is None or "Delete wine, with 12 trials?" in asked.output
    assert asked.exit_code == len(files_of(memory)) - 1 == (answer != "y\n")
    said = "" if answer == "y\n" else "dre: Nothing was deleted; --yes deletes without asking.\n"
    assert asked.stderr == said


def test_export_and_import(dre, memory, tmp_path):
    tasks, other = tmp_path / "tasks.json", tmp_path / "other"
    assert f"written to {tasks}\n" in dre("memory", "export", "-o", tasks).output
    assert sorted(task.name for task in MetaDataset.load(tasks)) == ["iris", "wine"]
    assert "Recorded 0 of 2" in words(dre("memory", "import", tasks))
    assert "Recorded 2 of 2" in words(dre("memory", "import", tasks, "--memory", other))
    assert "Recorded 0 of 2" in words(dre("memory", "import", tasks, "--memory", other))
    again = tmp_path / "again.json"
    dre("memory", "export", "wine", "-o", again, "--memory", other)
    (task,) = MetaDataset.load(again)
    expected = MetaDataset.load(tasks).subset({"wine"}).tasks[0]
    assert task.space == expected.space == SPACE
    assert (task.values == expected.values).all() and len(task) == 12
    # To a file and back, units are the same to rounding: configurations are what is recorded.
    assert abs(task.units - expected.units).max() < 1e-12


def test_the_newest_study_is_exported_last(dre, memory, tmp_path):
    names = ["f", "b", "d", "a", "e", "c"]
    for name in names:
        write_study(memory, name)
    dre("memory", "export", "-o", tmp_path / "tasks.json")
    tasks = MetaDataset.load(tmp_path / "tasks.json").tasks
    assert [task.name for task in tasks] == ["wine", "iris", *names]


def test_what_is_imported_twice_is_recorded_once(dre, memory, tmp_path, monkeypatch):
    """The same file twice; a file of the imported studies; studies that have one name."""
    tasks, again, other = tmp_path / "tasks.json", tmp_path / "again.json", tmp_path / "other"
    tune(memory, 6, name="wine")  # "wine" and "wine (2)"
    dre("memory", "export", "-o", tasks)
    assert "Recorded 3 of 6" in words(dre("memory", "import", tasks, tasks, "--memory", other))
    dre("memory", "export", "-o", again, "--memory", other)
    assert "Recorded 0 of 3" in words(dre("memory", "import", again, "--memory", other))
    read = Mock(wraps=selection.read_study)
    monkeypatch.setattr(selection, "read_study", read)
    dre("memory", "export", "iris", "-o", again)
    assert "Recorded 0 of 1" in words(dre("memory", "import", again))
    assert read.call_count == 2  # once for the file: no study of another name is read


def test_an_import_that_is_interrupted_can_be_repeated(dre, memory, tmp_path, monkeypatch):
    tasks, other = tmp_path / "tasks.json", tmp_path / "other"
    dre("memory", "export", "wine", "-o", tasks)
    line, full = records.trial_line, Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(
        records, "trial_line", lambda n, *rest: full() if n == 5 else line(n, *rest)
    )
    dre("memory", "import", tasks, "--memory", other, code=1)
    monkeypatch.undo()
    assert "Recorded 1 of 1" in words(dre("memory", "import", tasks, "--memory", other))
    assert [entry.n_trials for entry in Memory(other).index().entries] == [12]


def test_export_says_which_studies_it_leaves_out(dre, memory, tmp_path):
    ended = {"lr": 0.1, "layers": 1}, TrialState.COMPLETE
    recorder = Recorder(memory.records, header("several", directions=("minimize", "minimize")))
    recorder.write(0, Trial(*ended, objectives=(1.0, 2.0)), SPACE)
    Recorder(memory.records, header()).write(0, Trial(*ended, 1.0, constraints={"c": 1.0}), SPACE)
    printed = dre("memory", "export", "-o", tmp_path / "tasks.json").output
    for reason in ("with several objectives", "without a complete, feasible trial"):
        assert f"skipped: 1 × study {reason}" in printed
    nothing = ("memory", "export", "-o", tmp_path / "none.json", "--memory", tmp_path / "none")
    assert "nothing to export" in dre(*nothing, code=1).stderr
    alone = dre("memory", "export", "several", "-o", tmp_path / "none.json", code=1)
    assert "(1 study read, none with a trial to learn from)" in words(alone)
    assert not (tmp_path / "none.json").exists()


def test_only_files_of_dre_import_and_optuna_storages_are_imported(dre, studies, memory, table):
    for source in (table, "studies.db"):
        assert "file that dre import has made" in dre("memory", "import", source, code=1).stderr
    assert "Recorded 3 of 3" in words(dre("memory", "import", studies))
    assert "adult" in dre("memory", "list").output
    shown = dre("memory", "show", "adult").output
    assert "as imported: larger is better" in shown and "maximize" not in shown


def test_a_study_that_has_grown_takes_the_place_of_what_was_imported_before(dre, tmp_path):
    other, tasks = Memory(tmp_path / "other"), tmp_path / "tasks.json"
    for n in (3, 5):
        tune(tmp_path / f"source{n}", n, seed=0, name="grows")
        dre("memory", "export", "-o", tasks, "--memory", tmp_path / f"source{n}")
        assert "Recorded 1 of 1" in words(dre("memory", "import", tasks, "--memory", other.path))
        assert [entry.n_trials for entry in other.index().entries] == [n]
        for path in files_of(other):  # a drive has kept copies that conflict
            shutil.copy(path, path.with_stem(f"{path.stem} (1)"))


def test_a_study_has_grown_if_trials_that_were_running_went_on_or_failed():
    def task(high, n_reports):
        space = SearchSpace({"x": Float(0.1, high)})  # inferred: 0.2117 is rounded differently
        trials = [
            Trial({"x": x}, TrialState.PRUNED, None, dict.fromkeys(range(n), 1.0))
            for x, n in ((0.2117, 9), (0.3, n_reports))
        ]
        if not n_reports:
            trials[1] = Trial(trials[1].configuration, TrialState.FAILED)
        return Task.from_trials("s", space, trials)

    assert records.has_grown(task(0.6, 9), task(0.3123, 4))
    assert records.has_grown(task(0.6, 0), task(0.3123, 4))
    assert not records.has_grown(task(0.6, 4), task(0.3123, 9))
    assert not records.has_grown(task(0.6, 9), task(0.3123, 0))


def test_stats(dre, memory, monkeypatch):
    for number in range(2):
        tune(memory, 10, name=f"new {number}", seed=number)
    tune(memory, 0, name="without a trial so far")
    write_study(memory, "turned", 2, SearchSpace(dict(reversed(SPACE.domains.items()))))
    found = figures(dre)
    assert (found["studies"], found["trials"], found["search spaces"]) == ("5", "41", "2")
    assert found["of these, learnt from others"] == "2"
    assert found["first suggestions"] == "known from 10 studies on, of 2 so far"
    monkeypatch.setattr("dre_plugins.memory.savings.MIN_STUDIES", 2)
    text = words(dre("memory", "stats"))
    assert "of space-filling trials, as expected in 2 studies: as good as the best" in text
    assert "learnt from most" in text
    assert dict(row for row in figures(dre).items() if row[0].startswith("wine")) == {
        "wine (1970-01-01)": "2"
    }


def test_an_optuna_study_learns_from_studies_of_other_names(memory):
    optuna = pytest.importorskip("optuna")
    from dre_plugins import DRESampler

    for number in range(35):
        write_study(memory, f"beer {number}", 12)

    def objective(trial):
        rate = trial.suggest_float("learning_rate", 1e-3, 2.0, log=True)  # there "lr"
        return loss({"lr": rate, "layers": trial.suggest_int("layers", 1, 6)})

    sampler = DRESampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=2)
    assert sampler.explain(study, 0).source == "past-studies"
    found = sampler.stats["past_studies"], sampler.stats["memory_errors"]
    assert found == (MAX_STUDIES, 0)
