"""Studies for the tests of the memory."""

import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from small_spaces import told

from dre_plugins import AskTell
from dre_plugins.memory import Memory
from dre_plugins.memory.access import StudyMemory
from dre_plugins.memory.recorded_study import Header
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Float, Integer, SearchSpace

SPACE = SearchSpace({"lr": Float(1e-4, 1.0, "log"), "layers": Integer(1, 8)})
LOGGER = logging.getLogger("tests.memory")


def header(
    study: str = "a", name: str = "", directions: tuple[str, ...] = ("minimize",)
) -> Header:
    return Header(study=study, name=name, framework="tests", directions=directions, began=1000.0)


DAY = header().dated.removeprefix("a (").removesuffix(")")


def loss(configuration, best: float = 0.03) -> float:
    lr = abs(np.log10(configuration["lr"]) - np.log10(best))
    return lr + 0.1 * abs(configuration["layers"] - 4)


def objective(trial) -> float:
    """Return the same loss of a trial of Optuna."""
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    return loss({"lr": lr, "layers": trial.suggest_int("layers", 1, 8)})


def optimize(n_trials: int, *, name="present", seed=0, storage=None, sampler=None, **options):
    """Run trials of a study of Optuna, which goes on if the storage has it."""
    from optuna_worker import optimized

    from dre_plugins import DRESampler

    sampler = sampler or DRESampler(seed=seed, **options)
    of_study = {"study_name": name, "storage": storage, "load_if_exists": True}
    return optimized(sampler, objective, n_trials, **of_study)


def memory_of(study: str, memory: Memory) -> StudyMemory:
    return StudyMemory(memory, header(study, study), stats=Counter(), logger=LOGGER)


def write_study(
    memory: Memory, study: str, n_trials: int = 12, space: SearchSpace = SPACE, sign: float = 1.0
) -> None:
    """Record random trials of the same loss, or of its mirror image."""
    rng = np.random.default_rng(sum(map(ord, study)))
    remembered = memory_of(study, memory)
    for number in range(n_trials):
        drawn = space.to_configuration(rng.random(space.n_parameters))
        value = loss(drawn) if space is SPACE else float(number)
        ended = Trial(drawn, TrialState.COMPLETE, -sign * value)
        remembered.record(number, lambda ended=ended: (ended, space))
    assert not remembered.stats


def write_studies(memory: Memory, names: Iterable[str], *rest, **options) -> None:
    for name in names:
        write_study(memory, name, *rest, **options)


def tune(
    memory: object, n_trials: int, *, name: str = "study", seed: int = 0, **options
) -> AskTell:
    return continued(AskTell(SPACE, seed=seed, memory=memory, name=name, **options), n_trials)


def continued(study: AskTell, n_trials: int) -> AskTell:
    return told(study, n_trials, loss)


def configurations(study: AskTell) -> list:
    return [trial.configuration for trial in study.trials]


def files_of(memory: Memory) -> list[Path]:
    return sorted(memory.records.glob("*.jsonl"))
