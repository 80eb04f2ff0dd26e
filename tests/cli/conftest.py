"""Real inputs of the command line, made once."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_lines import Run, running


@pytest.fixture(scope="session")
def dre() -> Run:
    """Run `dre` with arguments; any other exit code fails the test."""
    pytest.importorskip("typer.testing")
    from dre_plugins.cli.app import app

    return running(app, "dre")


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a storage with three studies, and an empty one."""
    optuna = pytest.importorskip("optuna")
    url = f"sqlite:///{tmp_path_factory.mktemp('studies') / 'studies.db'}"

    def objective(trial: Any) -> float:
        rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
        depth = trial.suggest_int("max_depth", 1, 8)
        booster = trial.suggest_categorical("booster", ["tree", "dart"])
        drop = trial.suggest_float("rate_drop", 0.0, 1.0) if booster == "dart" else 0.0
        return (math.log10(rate) + 2.0) ** 2 + 0.1 * (depth - 5) ** 2 + drop

    for seed, name in enumerate(("adult", "bank", "credit")):
        study = optuna.create_study(
            storage=url, study_name=name, sampler=optuna.samplers.RandomSampler(seed=seed)
        )
        study.optimize(objective, n_trials=12)
    optuna.create_study(storage=url, study_name="empty")
    return url


@pytest.fixture(scope="session")
def tasks(studies: str, dre: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks") / "tasks.json"
    dre("import", "optuna", studies, "-o", path)
    return path


@pytest.fixture(scope="session")
def prior(tasks: Path, dre: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prior") / "boosting.safetensors"
    options = ("--steps", 30)
    result = dre("meta-train", tasks, "-o", path, *options, "--description", "Three studies")
    for text in ("boosting", "Three studies", "adult, bank, credit", "n_steps: 30", str(path)):
        assert text in result.output.replace("\n", "")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a CSV file of two tasks, with one failed evaluation and a column of no use."""
    path = tmp_path / "runs.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "lr", "layers", "seconds", "accuracy"])
        for dataset in ("wine", "iris"):
            for row in range(8):
                lr = 10 ** rng.uniform(-3, -1)
                writer.writerow([dataset, lr, row % 3 + 1, 1.5, "" if row == 5 else 0.9 - lr])
    return path
