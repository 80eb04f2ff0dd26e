"""Meta-training: that it learns, that it can be interrupted and repeated."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from lists_of_tasks import PLAIN, QUICK, SCORER, numbered, padded
from safetensors.torch import load_file, save_file
from scipy.stats import spearmanr
from torch_defaults import torch_defaults

from dre_plugins.engine import ContextSettings, ScorerSettings
from dre_plugins.engine.losses import LOSSES
from dre_plugins.engine.scorers import Parameters
from dre_plugins.engine.settings import LOSS_NAMES, FittingError
from dre_plugins.engine.surrogate import DeepRankingEnsemble, RankingLists
from dre_plugins.transfer import meta_training
from dre_plugins.transfer.meta_training import MetaTrainingSettings, Progress, meta_train
from dre_plugins.transfer.task_lists import TaskLists, validation_batch
from dre_plugins.transfer.training_state import TrainingState


def family(n_tasks: int = 20, seed: int = 0, n: int = 40) -> TaskLists:
    """Parabolas, each task with an optimum of its own."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand((n_tasks, n, 1), generator=generator)
    optima = torch.rand((n_tasks, 1), generator=generator)
    return padded(list(x), list(-((x[..., 0] - optima) ** 2)))


def small_train(seed: int = 0, **changes) -> TrainingState:
    return meta_train(family(), family(20, seed=1), SCORER, replace(QUICK, **changes), seed=seed)


def assert_equal(first: Parameters, second: Parameters) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


def ensemble_of(trained: TrainingState, scorer: ScorerSettings = SCORER) -> DeepRankingEnsemble:
    return DeepRankingEnsemble(scorer, 1, trained.parameters)


# ---- that it learns


def unseen(ensemble: DeepRankingEnsemble, n_support: int) -> float:
    """Mean rank correlation over unseen tasks, of which some entries are known."""
    tasks = family(30, seed=2)
    found = []
    for x, y in zip(tasks.features, tasks.values, strict=True):
        support = RankingLists.single(x[:n_support], y[:n_support]) if n_support else None
        scores = replace(ensemble, support=support).scores(x[10:]).mean(0)
        found.append(float(spearmanr(scores.numpy(), y[10:].numpy()).statistic))
    return float(np.mean(found))


def test_it_learns_a_family_of_tasks_and_adapts_to_a_new_one() -> None:
    scorer = replace(SCORER, hidden=(16, 16), context=ContextSettings(hidden=16, size=4))
    settings = replace(
        QUICK, n_steps=600, n_lists=8, list_length=30, max_support=10, validate_every=100
    )
    trained = meta_train(family(), family(5, seed=1), scorer, settings, seed=0)
    ensemble = ensemble_of(trained, scorer)
    assert abs(unseen(DeepRankingEnsemble.initialise(scorer, 1, seed=0), 0)) < 0.1
    assert unseen(ensemble, 0) > 0.3  # the middle is a good guess
    assert unseen(ensemble, 10) > 0.8


def validation_loss(
    parameters: Parameters, scorer: ScorerSettings, settings: MetaTrainingSettings
) -> float:
    batch = validation_batch(family(20, seed=1), scorer, settings, "cpu")
    return float(meta_training._loss(parameters, batch, scorer, LOSSES[settings.loss]))


def initial(scorer: ScorerSettings) -> Parameters:
    return DeepRankingEnsemble.initialise(scorer, 1, seed=0).parameters


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_every_loss_can_be_meta_trained_with(loss) -> None:
    best = small_train(loss=loss).history[-1].best
    assert best < validation_loss(initial(SCORER), SCORER, replace(QUICK, loss=loss))


@pytest.mark.parametrize(
    "scorer",
    [
        PLAIN,
        replace(SCORER, n_members=1),
        replace(PLAIN, hidden=(16,)),
        replace(SCORER, hidden=(16,), activation="relu", range_limit=2.0, centred=False),
    ],
    ids=["no context", "one member", "one layer", "paper"],
)
def test_parts_can_be_switched_off(scorer) -> None:
    trained = meta_train(family(), family(20, seed=1), scorer, QUICK, seed=0)
    assert trained.history[-1].best < validation_loss(initial(scorer), scorer, QUICK)
    scores = ensemble_of(trained, scorer).scores(family(1).features[0])
    assert scores.shape == (scorer.n_members, 40) and torch.isfinite(scores).all()


@pytest.mark.parametrize(
    "changes", [{"max_support": 1}, {"list_length": 2}, {"n_lists": 1}, {"list_length": 500}]
)
def test_extreme_sizes_work(changes) -> None:
    lists = numbered(2, 3, 40)
    trained = meta_train(lists, lists, SCORER, replace(QUICK, n_steps=3, **changes), seed=0)
    assert [entry.step for entry in trained.history] == [3]


# ---- how it ends


def test_the_weights_of_the_smallest_validation_loss_are_returned() -> None:
    settings = replace(QUICK, learning_rate=0.3, n_steps=100, validate_every=10)
    trained = meta_train(family(3), family(20, seed=1), SCORER, settings, seed=0)
    losses = [entry.validation_loss for entry in trained.history]
    assert trained.history[-1].best == min(losses) < losses[-1]
    assert validation_loss(trained.parameters, SCORER, settings) == min(losses)


def test_patience_ends_a_training_that_gets_no_better() -> None:
    # What is learnt is the opposite of what is validated.
    validation = family(4)
    opposite = replace(validation, values=-validation.values)
    settings = replace(QUICK, n_steps=400, validate_every=10, patience=3)
    history = meta_train(validation, opposite, PLAIN, settings, seed=0).history
    losses = [entry.validation_loss for entry in history]
    assert history[-1].step < 400
    assert len(losses) - 1 - int(np.argmin(losses)) == 3


def test_without_validation_the_last_weights_are_returned(tmp_path) -> None:
    seen: list[Progress] = []
    settings = replace(QUICK, n_steps=50)
    trained = meta_train(family(), None, SCORER, settings, seed=0, on_progress=seen.append)
    assert [entry.step for entry in trained.history] == [20, 40, 50]
    assert trained.history == seen
    assert all(entry.validation_loss == entry.loss for entry in seen)
    longer = meta_train(family(), None, SCORER, replace(settings, patience=1), seed=0)
    assert_equal(trained.parameters, longer.parameters)
    settings, path = replace(settings, validate_every=1, patience=50), tmp_path / "state.ckpt"
    trained = meta_train(family(), None, SCORER, settings, seed=0, checkpoint=path)
    assert trained.history[-1].loss > trained.history[-1].best  # the best ones are others
    last = load_file(path)
    assert_equal(trained.parameters, {n: last[f"parameters/{n}"] for n in trained.parameters})


def test_a_training_that_diverges_says_so() -> None:
    with pytest.raises(FittingError, match=r"diverged.*smaller learning_rate than 1000000\.0"):
        small_train(learning_rate=1e6)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *((name, 0) for name in "n_steps n_lists max_support validate_every patience".split()),
        *(("learning_rate", value) for value in (0.0, float("nan"))),
        *(("loss", "hinge"), ("list_length", 1)),
    ],
)
def test_an_invalid_setting_is_named(argument, value) -> None:
    with pytest.raises(ValueError, match=rf"{argument} must be .*got {value!r}"):
        MetaTrainingSettings(**{argument: value})


# ---- that it can be repeated and interrupted


def test_equal_seeds_give_equal_weights_and_others_give_others() -> None:
    first, again, other = small_train(), small_train(), small_train(seed=1)
    assert_equal(first.parameters, again.parameters)
    assert first.history == again.history
    for name, value in first.parameters.items():
        assert not torch.equal(value, other.parameters[name])


class Interruption(Exception):
    """Stands for whatever ends a process in the middle."""


def interrupted(path: Path, settings: MetaTrainingSettings, validation: TaskLists | None) -> None:
    def stop(progress: Progress) -> None:
        raise Interruption

    with pytest.raises(Interruption):
        meta_train(
            family(), validation, SCORER, settings, seed=0, checkpoint=path, on_progress=stop
        )


@pytest.mark.parametrize("validate_every", [10, 25, 35])
@pytest.mark.parametrize("is_validated", [True, False])
def test_a_resumed_training_ends_as_if_it_had_never_stopped(
    tmp_path, validate_every, is_validated
) -> None:
    path = tmp_path / "state.safetensors"
    settings = replace(QUICK, n_steps=60, validate_every=validate_every)
    validation = family(20, seed=1) if is_validated else None
    whole = meta_train(family(), validation, SCORER, settings, seed=0)
    interrupted(path, settings, validation)
    seen: list[Progress] = []
    options = {"seed": 0, "checkpoint": path, "resume": True, "on_progress": seen.append}
    resumed = meta_train(family(), validation, SCORER, settings, **options)
    assert seen == [*whole.history[1:]]
    assert_equal(whole.parameters, resumed.parameters)
    assert whole.history == resumed.history
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_resuming_what_is_finished_or_was_never_begun(tmp_path) -> None:
    path = tmp_path / "state.safetensors"
    lists = family()
    first, again = (
        meta_train(lists, None, SCORER, QUICK, seed=0, checkpoint=path, resume=True)
        for _ in range(2)
    )
    assert_equal(first.parameters, again.parameters)
    assert first.history == again.history


def test_without_resume_a_checkpoint_is_overwritten(tmp_path) -> None:
    path = tmp_path / "state.safetensors"
    interrupted(path, QUICK, None)
    before = path.read_bytes()
    meta_train(family(), None, SCORER, QUICK, seed=1, checkpoint=path)
    assert path.read_bytes() != before


def test_checkpoints_of_other_trainings_and_damaged_ones_are_refused(tmp_path) -> None:
    path = tmp_path / "state.safetensors"
    interrupted(path, QUICK, None)

    def refused(
        match: str, lists=None, validation=None, scorer=SCORER, settings=QUICK, seed=0
    ) -> None:
        lists = family() if lists is None else lists
        resumed = {"seed": seed, "checkpoint": path, "resume": True}
        with pytest.raises(ValueError, match=rf"state\.safetensors.*{match}.*delete it"):
            meta_train(lists, validation, scorer, settings, **resumed)

    refused("other data, settings or seed", seed=1)
    refused("other data, settings or seed", settings=replace(QUICK, n_steps=61))
    refused("other data, settings or seed", scorer=replace(SCORER, hidden=(8,)))
    refused("other data, settings or seed", lists=family(seed=1))
    refused("other data, settings or seed", validation=family())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("cannot be resumed")
    path.write_bytes(b"no checkpoint")
    refused("cannot be resumed")
    save_file({"weights": torch.zeros(1)}, path)
    refused("format is None")


def test_the_users_torch_is_left_as_it_was() -> None:
    expected = small_train()
    lists, validation = family(), family(20, seed=1)
    torch.set_num_threads(2)
    torch.manual_seed(5)  # noqa: TID251 - the user's own call
    states = (torch.get_rng_state(), random.getstate())
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002 - the user's own state
    with torch_defaults(torch.float64, "meta"):
        with torch.inference_mode():
            found = meta_train(lists, validation, SCORER, QUICK, seed=0)
        assert torch.get_default_dtype() == torch.float64
        assert torch.get_default_device() == torch.device("meta")
    assert_equal(found.parameters, expected.parameters)
    assert found.history == expected.history
    assert torch.get_num_threads() == 2
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002
    assert not torch.cuda.is_initialized()
