"""Whatever a storage holds ends no study: what runs with random search runs with `DRESampler`."""

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402
from optuna_worker import tiny_sampler  # noqa: E402
from stored import STORAGES, Stored, objective, storage_of, studies  # noqa: E402

from dre_plugins.adapters.optuna import DRESampler, claims as optuna_claims  # noqa: E402
from dre_plugins.adapters.optuna.sources import metadata_from_studies  # noqa: E402
from dre_plugins.recommend import search  # noqa: E402

N_TRIALS = 3


@pytest.fixture(autouse=True)
def _small_effort(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(optuna_claims, "PATIENCE", (0.0,))  # nobody else is at work
    for name, less in {"N_REFERENCE": 32, "N_SOBOL": 32, "N_CHILDREN": 16, "N_ROUNDS": 1}.items():
        monkeypatch.setattr(search, name, less)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna's, of what it finds odd as well
        yield


def continued(kind: str, stored: Stored, sampler: Any) -> list[TrialState]:
    """Fill a storage, go on from there and look into it; return the states of what was run."""
    directions = ["minimize", "maximize"][: stored.n_objectives]
    with tempfile.TemporaryDirectory(prefix="dre-fuzz-") as folder:
        storage = storage_of(kind, Path(folder))
        study = optuna.create_study(directions=directions, storage=storage, sampler=sampler)
        study.optimize(objective, n_trials=stored.n_proper)
        for trial in stored.trials:
            storage.create_new_trial(study._study_id, template_trial=trial)  # checks nothing
        for wanted in stored.enqueued:
            study.enqueue_trial(wanted)
        n_before = len(study.get_trials(deepcopy=False))
        study.optimize(objective, n_trials=len(stored.enqueued) + N_TRIALS)
        trials = study.trials
        if isinstance(sampler, DRESampler):
            assert all(str(sampler.explain(study, trial)) for trial in trials)
            metadata_from_studies(study)
    return [trial.state for trial in trials[n_before:]]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow if kind == "SQLite" else ()) for kind in STORAGES],
)
# A study takes as long as five damaged files.
@settings(max_examples=settings.default.max_examples // 5, suppress_health_check=[*HealthCheck])
@given(stored=studies())
def test_a_damaged_study_goes_on(kind: str, stored: Stored) -> None:
    try:
        wanted = continued(kind, stored, optuna.samplers.RandomSampler(seed=0))
    except Exception:
        assume(False)  # Optuna itself cannot read it, or does not let it in
    sampler = tiny_sampler(n_startup_trials=1)
    assert continued(kind, stored, sampler) == wanted
    assert sampler.stats["fallbacks"] == 0
