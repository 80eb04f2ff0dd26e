"""From past tasks to a prior: merge their spaces, meta-train, validate, write the card.

Beliefs of the user become a past task, whose values fall with the distance from the favourites.
"""

import datetime
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from dre_plugins.checks import is_integer, require
from dre_plugins.engine.settings import ContextSettings, ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.space.base import Array
from dre_plugins.space.candidates import mutate, sobol
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.meta_training import Progress, meta_train
from dre_plugins.transfer.metadata import MetaDataset, Task, with_parameters
from dre_plugins.transfer.prior_file import Card, PriorContent
from dre_plugins.transfer.spaces.merging import unify_names, union_of
from dre_plugins.transfer.task_lists import TaskLists, evenly_spaced, units_in
from dre_plugins.transfer.training_state import MetaTrainingSettings

# From this many tasks on, every fifth is held out for early stopping; no other numbers were tried.
MIN_TASKS_TO_HOLD_OUT = 10
HELD_OUT = 5

SCORER = ScorerSettings(
    activation="silu", range_limit=None, centred=True, context=ContextSettings()
)
# Smallest number of favourites in a prior: the best configurations of past tasks. A first trial
# was as good with ten as with one, and worse with a hundred (lab/2026-11-24-learners.md).
N_FAVOURITES = 20
# Largest number of tasks with favourites, evenly spaced, as they are in the header of the file.
MAX_FAVOURITES = 1000

# For a single task, of beliefs: more steps only memorise it (lab/2026-11-23-decisions.md).
OF_BELIEFS = MetaTrainingSettings(n_steps=100, learning_rate=0.01, n_lists=4)

# Number of random completions of a partial configuration that is believed to be good, and of
# points near the favoured configurations and all over the space. Beliefs were measured with these,
# no others were tried (lab/2026-11-23-decisions.md#constraints-several-objectives-noise-beliefs).
N_COMPLETIONS = 8
N_NEAR = 128
N_SPREAD = 128


def train_prior(
    metadata: MetaDataset,
    *,
    name: str = "my-prior",
    description: str = "",
    validation: MetaDataset | None = None,
    space: SearchSpace | None = None,
    defaults: Mapping[str, Any] | None = None,
    scorer: ScorerSettings = SCORER,
    settings: MetaTrainingSettings | None = None,
    seed: int = 0,
    progress: bool = False,
    rebuild: str = "",
    **machine: Any,
) -> PriorContent:
    """Meta-train a prior, see `Prior.train`; `machine` has further arguments of `meta_train`."""
    require(is_integer(seed) and seed >= 0, "seed", seed, "a non-negative integer")
    metadata = with_parameters(metadata)
    if not len(metadata):
        raise ValueError(
            "metadata has no task with parameters, so there is nothing to learn from; "
            f"what was left out: {dict(metadata.skipped) or 'nothing'}."
        )
    settings = settings if settings is not None else MetaTrainingSettings()
    if space is None:
        spaces = [task.space for task in metadata]
        space = union_of(spaces, [task.name for task in metadata])
        renamed = zip(metadata, unify_names(spaces), strict=True)
        tasks = tuple(replace(task, space=of_task) for task, of_task in renamed)
        metadata = replace(metadata, tasks=tasks)
    training = metadata
    if validation is None:
        training, validation = held_out(metadata)
    validation = with_parameters(validation)
    lists = TaskLists.of(training.tasks, space)
    validation_lists = TaskLists.of(validation.tasks, space) if len(validation) else None
    with _bar(progress) as on_progress:
        trained = meta_train(
            lists,
            validation_lists,
            scorer,
            settings,
            seed=seed,
            on_progress=on_progress,
            **machine,
        )
    card = Card(
        name=name,
        description=description,
        tasks=tuple(task.name for task in metadata),
        n_evaluations=metadata.n_evaluations,
        source=metadata.source,
        licence=metadata.licence,
        created=datetime.date.today().isoformat(),
        rebuild=rebuild,
        defaults=dict(defaults or {}),
        training={"seed": seed, "n_task_lists": len(lists), **asdict(settings)},
        validation={
            "n_tasks": len(validation),
            "loss": trained.history[-1].best,
            "steps": trained.history[-1].step,
        },
    )
    ensemble = DeepRankingEnsemble(scorer, space.n_features, trained.parameters)
    return PriorContent(ensemble, space, card, favourites_of(training, space))


def favourites_of(metadata: MetaDataset, space: SearchSpace) -> Array:
    """Return the best configurations of each task, as canonical coordinates of `space` `[F, P]`.

    While nothing is observed, scorers trained on few tasks rank configurations best that no task
    has tried. The best configurations of past tasks are the safer start.
    """
    spread = [metadata.tasks[row] for row in evenly_spaced(len(metadata), MAX_FAVOURITES)]
    tasks = [task for task in spread if task.n_complete]
    n_best = max(1, N_FAVOURITES // max(len(tasks), 1))
    rows = [np.empty((0, space.n_parameters))]
    for task in tasks:
        best = np.argsort(-task.values, kind="stable")  # failed trials, which are NaN, come last
        rows.append(units_in(space, task)[best[: min(n_best, task.n_complete)]])
    return np.concatenate(rows)


def held_out(metadata: MetaDataset) -> tuple[MetaDataset, MetaDataset]:
    """Split off every fifth task for validation; none if there are few.

    Tasks that are not trained on show when more training only memorises. If there are few tasks,
    all are needed for training. Tasks whose values are all the same are not used for validation.
    """
    ordered = [task.name for task in metadata if task.lists()]
    is_many = len(ordered) >= MIN_TASKS_TO_HOLD_OUT
    out = set(ordered[HELD_OUT - 1 :: HELD_OUT]) if is_many else set()
    return metadata.subset({task.name for task in metadata} - out), metadata.subset(out)


def metadata_of_beliefs(
    space: SearchSpace, configurations: Sequence[Mapping[str, Any]]
) -> MetaDataset:
    """Return the task that beliefs describe: configurations that are expected to be good.

    They may lack parameters. A ValueError says that there are none, or one is not in the space or
    names nothing that is searched.
    """
    is_list = isinstance(configurations, Sequence) and len(configurations) > 0
    are_given = is_list and all(isinstance(given, Mapping) for given in configurations)
    require(are_given, "configurations", configurations, "at least one, in a list")
    for configuration in configurations:
        unknown = [name for name in configuration if name not in space.domains]
        require(not unknown, "configurations", unknown, f"made of {[*space.domains]}")
        is_any = any(name in space.names for name in configuration)
        require(is_any, "configurations", configuration, f"of at least one of {[*space.names]}")
        for name, value in configuration.items():
            domain = space.domains[name]
            require(domain.contains(value), name, value, f"in {domain}")
    rng = np.random.default_rng(0)
    believed = space.to_units(configurations)
    favoured = np.repeat(believed, N_COMPLETIONS, axis=0)
    favoured = space.canonical(np.where(np.isnan(favoured), rng.random(favoured.shape), favoured))
    near = space.canonical(mutate(space, favoured, N_NEAR, rng))
    spread = space.canonical(sobol(space.n_parameters, N_SPREAD, rng))
    units = np.concatenate([favoured, near, spread])
    # A belief counts in the parameters that it names only.
    features = space.features(units)
    values = np.full(len(units), -np.inf)
    for row, configuration in enumerate(configurations):
        columns, place = space.feature_columns(configuration), row * N_COMPLETIONS
        distance = np.abs(features[:, columns] - features[place, columns]).sum(1)
        values = np.maximum(values, -distance)
    failed = np.zeros(len(units), dtype=np.bool_)
    task = Task("beliefs", space, units, values, failed)
    return MetaDataset.of([task], source="beliefs")


@contextmanager
def _bar(is_shown: bool) -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar with losses and the time left, on a terminal only."""
    if not is_shown:
        yield lambda _: None
        return
    state = random.getstate()
    from rich.console import Console
    from rich.progress import Progress as Bar

    random.setstate(state)  # the first import of rich draws from the user's generator
    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("meta-training", total=None)

        def show(progress: Progress) -> None:
            losses = f"loss {progress.loss:.2f} validation {progress.validation_loss:.2f}"
            text = f"meta-training, {losses} (best {progress.best:.2f})"
            bar.update(task, total=progress.n_steps, completed=progress.step, description=text)

        yield show
