"""Lists that are made a window at a time: what is drawn, and that training is the same."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dre_plugins.engine import ContextSettings, ScorerSettings
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer import draws, meta_training, streamed_lists
from dre_plugins.transfer.meta_training import MetaTrainingSettings, Progress, meta_train
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.streamed_lists import StreamedLists, lists_of
from dre_plugins.transfer.task_lists import TaskLists
from dre_plugins.transfer.training import encoder_of

SPACE = SearchSpace({"number": Float(0.0, 1.0), "x": Float(0.0, 1.0)})
ENCODE = encoder_of(SPACE)
SCORER = ScorerSettings(
    n_members=2,
    hidden=(8, 8),
    activation="silu",
    range_limit=None,
    centred=True,
    context=ContextSettings(hidden=8, size=4),
)
QUICK = MetaTrainingSettings(
    n_steps=60, n_lists=4, list_length=12, max_support=8, validate_every=20
)


def parabolas(n_tasks: int = 20, n: int = 30) -> list[Task]:
    """Tasks whose first feature is their number, in hundredths."""
    rng = np.random.default_rng(0)
    tasks = []
    for number in range(n_tasks):
        x = rng.random(n)
        units = np.stack([np.full(n, number / 100), x], axis=1)
        values = -((x - number / n_tasks) ** 2)
        tasks.append(Task(f"task {number}", SPACE, units, values, np.zeros(n, dtype=np.bool_)))
    return tasks


def numbers(lists: TaskLists) -> list[int]:
    return [round(100 * one) for one in lists.features[:, 0, 0].tolist()]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def same(first: TaskLists, second: TaskLists) -> bool:
    return all(
        torch.equal(getattr(first, name), getattr(second, name)) for name in TaskLists.__slots__
    )


def test_a_window_has_the_lists_of_the_tasks_that_were_drawn() -> None:
    tasks = parabolas()
    streamed = StreamedLists(tasks, ENCODE, 2)
    window = streamed.window(5 * streamed_lists.DRAWS, generator())
    drawn = numbers(window)
    assert len(set(drawn)) == 5
    assert same(window, TaskLists.of([tasks[number] for number in drawn], ENCODE))
    assert numbers(streamed.window(5 * streamed_lists.DRAWS, generator(1))) != drawn
    assert sorted(numbers(streamed.window(10**6, generator()))) == list(range(20))


def test_all_tasks_are_drawn_equally_often() -> None:
    streamed, source = StreamedLists(parabolas(10), ENCODE, 2), generator()
    drawn = [numbers(streamed.window(2 * streamed_lists.DRAWS, source)) for _ in range(500)]
    counts = np.bincount(np.concatenate(drawn), minlength=10)
    assert counts.sum() == 1000
    assert ((counts - 100) ** 2 / 100).sum() < 30  # chi-square: p < .001 for 9 degrees of freedom


def test_a_window_keeps_within_its_room(monkeypatch) -> None:
    monkeypatch.setattr(streamed_lists, "MAX_NUMBERS", 3 * 30 * (2 + streamed_lists.ENTRY))
    streamed = StreamedLists(parabolas(), ENCODE, 2, max_length=30)
    assert len(streamed.window(10**6, generator())) == 3


def test_other_evaluations_of_a_long_task_are_in_each_window() -> None:
    (task,) = parabolas(1, n=100)
    streamed, source = StreamedLists([task], ENCODE, 2, max_length=10), generator()
    found = [set(streamed.window(8, source).features[0, :, 1].tolist()) for _ in range(40)]
    assert {len(one) for one in found} == {10}
    assert len(set.union(*found)) > 90
    spread = streamed.spread(1)
    assert torch.equal(spread.features[0, :, 1], torch.from_numpy(ENCODE(task)[::11, 1]))
    assert same(spread, streamed.spread(1))


def test_spread_takes_evenly_spaced_ones_of_either() -> None:
    tasks = parabolas()
    streamed, whole = StreamedLists(tasks, ENCODE, 2), TaskLists.of(tasks, ENCODE)
    assert numbers(streamed.spread(3)) == [0, 10, 19]
    assert same(streamed.spread(3), whole.spread(3))
    assert whole.spread(20) is whole and len(streamed.spread(99)) == 20


def test_only_what_is_too_large_is_streamed(monkeypatch) -> None:
    tasks = parabolas()
    whole = lists_of(tasks, ENCODE, 2, 20)
    assert isinstance(whole, TaskLists) and same(whole, TaskLists.of(tasks, ENCODE))
    monkeypatch.setattr(streamed_lists, "MAX_NUMBERS", 1000)
    assert isinstance(lists_of(tasks, ENCODE, 2, 20), StreamedLists)


def test_lists_in_memory_are_their_own_window_and_draw_nothing() -> None:
    whole, source = TaskLists.of(parabolas(), ENCODE), generator()
    assert whole.window(8, source) is whole
    assert torch.equal(source.get_state(), generator().get_state())


def test_tasks_that_are_others_have_another_digest() -> None:
    tasks = parabolas()
    digest = StreamedLists(tasks, ENCODE, 2).digest()
    assert StreamedLists(parabolas(), ENCODE, 2).digest() == digest
    others = [
        parabolas(19),
        tasks[::-1],
        [*tasks[1:], replace(tasks[0], values=tasks[0].values + 1e-9)],
        [*tasks[1:], replace(tasks[0], units=tasks[0].units + 1e-9)],
    ]
    digests = {StreamedLists(other, ENCODE, 2).digest() for other in others}
    assert digest not in digests and len(digests) == len(others)


def test_tasks_that_teach_nothing_are_refused() -> None:
    dull = [replace(one, values=np.zeros(30)) for one in parabolas(3)]
    with pytest.raises(ValueError, match="None of 3 past tasks has two evaluations that differ"):
        StreamedLists(dull, ENCODE, 2).window(100, generator())


# ---- training


class Interruption(Exception):
    """Stands for whatever ends a process in the middle."""


def test_a_streamed_training_learns_and_can_be_resumed(tmp_path: Path) -> None:
    tasks = parabolas()
    streamed = StreamedLists(tasks[::2], ENCODE, 2)
    validation = StreamedLists(tasks[1::2], ENCODE, 2)
    path = tmp_path / "state.safetensors"

    def train(**options) -> meta_training.MetaTrained:
        return meta_train(streamed, validation, SCORER, QUICK, seed=0, **options)

    def stop(progress: Progress) -> None:
        raise Interruption

    whole = train()
    losses = [entry.validation_loss for entry in whole.history]
    assert losses[-1] == min(losses) < losses[0]
    with pytest.raises(Interruption):
        train(checkpoint=path, on_progress=stop)
    resumed = train(checkpoint=path, resume=True)
    assert resumed.history == whole.history
    for name, value in whole.parameters.items():
        assert torch.equal(value, resumed.parameters[name])
    with pytest.raises(ValueError, match="other data"):
        meta_train(
            StreamedLists(tasks, ENCODE, 2), None, SCORER, QUICK, seed=0,
            checkpoint=path, resume=True,
        )  # fmt: skip


@dataclass(frozen=True)
class Watched(StreamedLists):
    """Notes in which threads its windows are made."""

    threads: list[str] = field(default_factory=list)

    def window(self, n_draws: int, generator: torch.Generator) -> TaskLists:
        self.threads.append(threading.current_thread().name)
        return StreamedLists.window(self, n_draws, generator)


def test_windows_made_ahead_are_those_that_would_be_made_when_they_are_needed(
    tmp_path: Path,
) -> None:
    """A training that is stopped at every look makes each window when it is needed."""
    path, settings = tmp_path / "state.safetensors", replace(QUICK, n_steps=70)
    whole, stopped = Watched(parabolas(), ENCODE, 2), Watched(parabolas(), ENCODE, 2)
    before = threading.enumerate()
    expected = meta_train(whole, None, SCORER, settings, seed=0)
    main = threading.current_thread().name
    assert whole.threads[0] == main
    assert len(whole.threads) == 4 and main not in whole.threads[1:]  # steps 0, 20, 40, 60

    def stop(progress: Progress) -> None:
        if progress.step < settings.n_steps:
            raise Interruption

    for _ in range(3):
        with pytest.raises(Interruption):
            meta_train(
                stopped, None, SCORER, settings, seed=0,
                checkpoint=path, resume=True, on_progress=stop,
            )  # fmt: skip
        assert threading.enumerate() == before
    resumed = meta_train(stopped, None, SCORER, settings, seed=0, checkpoint=path, resume=True)
    assert stopped.threads.count(main) == 4
    assert resumed.history == expected.history
    for name, value in expected.parameters.items():
        assert torch.equal(value, resumed.parameters[name]), name
    assert threading.enumerate() == before


class Vanishing(Watched):
    """Tasks that cannot be read any more when the second window is made."""

    def window(self, n_draws: int, generator: torch.Generator) -> TaskLists:
        if self.threads:
            raise OSError("the disk is gone")
        return Watched.window(self, n_draws, generator)


def test_a_window_that_cannot_be_made_ends_the_training_at_its_first_step() -> None:
    steps: list[int] = []
    before = threading.enumerate()
    with pytest.raises(OSError, match="the disk is gone"):
        meta_train(
            Vanishing(parabolas(), ENCODE, 2), None, SCORER, QUICK, seed=0,
            on_progress=lambda progress: steps.append(progress.step),
        )  # fmt: skip
    assert steps == [20]
    assert threading.enumerate() == before


def trained(metadata: MetaDataset) -> Prior:
    return Prior.train(metadata, scorer=SCORER, settings=QUICK)


def assert_equal(first: Prior, second: Prior) -> None:
    for name, value in first.ensemble.parameters.items():
        assert torch.equal(value, second.ensemble.parameters[name]), name
    np.testing.assert_array_equal(first.favourites, second.favourites)
    np.testing.assert_array_equal(first.contexts, second.contexts)
    assert first.card.to_dict() == second.card.to_dict()


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_folder_gives_the_prior_that_tasks_in_memory_give(
    tmp_path: Path, monkeypatch, is_streamed
) -> None:
    if is_streamed:
        monkeypatch.setattr(streamed_lists, "MAX_NUMBERS", 3000)
    metadata = MetaDataset(tuple(parabolas()))
    path = tmp_path / "past.tasks"
    metadata.save(path)
    assert_equal(trained(metadata), trained(MetaDataset.load(path)))


def test_validation_looks_at_a_bounded_number_of_lists(monkeypatch) -> None:
    monkeypatch.setattr(draws, "MAX_VALIDATION", 3)
    whole = TaskLists.of(parabolas(), ENCODE)
    batch = draws.validation_batch(whole, SCORER, QUICK, "cpu")
    assert batch.features.shape[1] == 3 * len(draws.VALIDATION_SHARES)


# Trains on a folder, and prints by how many bytes the memory of the process has grown at most.
STREAMING = """
import resource, sys
import numpy as np
from dre_plugins.engine import ScorerSettings
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer import draws, meta_training, streamed_lists
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

streamed_lists.MAX_NUMBERS, draws.MAX_VALIDATION = 2**20, 8
space = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(8)})
failed = np.zeros(1000, dtype=np.bool_)

def tasks(count):
    rng = np.random.default_rng(0)
    for number in range(count):
        units = rng.random((1000, 8))
        yield Task(f"{number}", space, units, units @ rng.random(8), failed)

def train(count):
    path = sys.argv[1] + f"/{count}.tasks"
    MetaDataset.write(path, tasks(count))
    settings = meta_training.MetaTrainingSettings(n_steps=100, validate_every=50)
    Prior.train(MetaDataset.load(path), scorer=ScorerSettings(n_members=1), settings=settings)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

few = train(200)
print(1024 * (train(2000) - few))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_tasks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STREAMING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    size = sum(file.stat().st_size for file in (tmp_path / "2000.tasks").iterdir())
    assert size > 140e6
    assert int(done.stdout) < 30e6


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_window_is_where_the_training_is() -> None:
    tasks = parabolas()
    streamed = StreamedLists(tasks, ENCODE, 2).to("cuda")
    assert streamed.window(100, generator()).features.is_cuda
    trained = meta_train(streamed, None, SCORER, QUICK, seed=0, device="cuda")
    assert trained.history[-1].step == QUICK.n_steps
