"""Metadata from Optuna's studies, wherever they are stored."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState as OptunaState

from dre_plugins.adapters.optuna.conversion import domain_of
from dre_plugins.adapters.optuna.history import read
from dre_plugins.checks import require, shortened
from dre_plugins.memory.selection import MIN_TRIALS
from dre_plugins.study.ask_tell import AskTell
from dre_plugins.transfer.metadata import MetaDataset, Task

Source: TypeAlias = optuna.Study | BaseStorage | str | AskTell

_ENDED = (OptunaState.COMPLETE, OptunaState.PRUNED, OptunaState.FAIL)
# The password of postgresql://user:password@host/name and of …?password=…; it may contain an @.
_PASSWORD = re.compile(r"(?<=://)(?P<user>[^:/]*):(?P<first>.+)@|[?&]password=(?P<second>[^&]+)")


def metadata_from_studies(
    past_studies: Source | Sequence[Source], *, study_names: Collection[str] | None = None
) -> MetaDataset:
    """Return Optuna's studies as metadata; nothing is written to a storage.

    Studies that are empty, are given twice, have several objectives or parameters that cannot be
    searched are counted in `skipped`. Parameters that have one value only are left out.

    Args:
        past_studies: A study, also an `AskTell`, a storage, the URL of one, such as
            "sqlite:///study.db", or several of these.
        study_names: The studies to keep, or one of them; None: all.

    Raises:
        ValueError: A storage cannot be read, or has no study of a name in `study_names`.
    """
    given = past_studies
    sources = [given] if isinstance(given, (optuna.Study, AskTell, BaseStorage, str)) else given
    remedy = "a study, a storage, the URL of one, a list of these, or from_table(…) of a table"
    is_list = isinstance(sources, Iterable) and not hasattr(sources, "keys")  # as data frames have
    require(is_list, "past_studies", sources, remedy)
    sources = [*sources]
    named = [study_names] if isinstance(study_names, str) else study_names
    wanted = None if named is None else set(named)
    names: list[str] = []
    skipped: Counter[str] = Counter()
    tasks: list[Task] = []
    identities: set[tuple[object, ...]] = set()
    for source in sources:
        for name, load in _studies(source):
            names.append(name)
            if wanted is not None and name not in wanted:
                continue
            study = load()
            try:
                trials = [] if isinstance(study, AskTell) else _ended(study)
            except (StorageInternalError, LookupError) as error:  # of a table, or of an entry
                if isinstance(source, str):
                    raise _unreadable(source, error) from None
                raise
            # The same study may be given as an object, in its storage and by a URL.
            starts = (trial.datetime_start for trial in trials)
            identity = (id(study),) if isinstance(study, AskTell) else (name, *starts)
            if identity in identities:
                skipped["study that is given twice"] += 1
                continue
            identities.add(identity)
            task = _task(study, trials, skipped)
            tasks += [] if task is None else [task]
    missing = sorted((wanted or set()) - set(names))
    if missing:
        raise ValueError(f"There are no studies {missing}; the names are {names}.")
    places = dict.fromkeys(_hidden(source) for source in sources if isinstance(source, str))
    return MetaDataset.of(tasks, source=f"Optuna {', '.join(places)}".strip(), skipped=skipped)


def _studies(source: object) -> Iterator[tuple[str, Callable[[], optuna.Study | AskTell]]]:
    """Yield the name of every study, and what loads the study."""
    if isinstance(source, (optuna.Study, AskTell)):
        yield source.name if isinstance(source, AskTell) else source.study_name, lambda: source
    elif isinstance(source, BaseStorage):
        yield from _stored_in(source)
    elif isinstance(source, str):
        with _opened(source) as storage:
            yield from _stored_in(storage)
    else:
        remedy = "Optuna studies, storages or the URLs of storages"
        if isinstance(source, FrozenTrial):
            remedy = "the study itself instead of its trials"
        raise ValueError(f"past_studies has {shortened(source)}; give {remedy}.")


def _stored_in(storage: BaseStorage) -> Iterator[tuple[str, Callable[[], optuna.Study]]]:
    for name in optuna.get_all_study_names(storage):
        yield name, partial(optuna.load_study, study_name=name, storage=storage)
    storage.remove_session()


@contextmanager
def _opened(url: str) -> Iterator[BaseStorage]:
    """Open a storage of which the studies can be listed.

    A ValueError without the password says that the URL is invalid or the storage unreadable.
    """
    # SQLite would create the file; a URI that begins with "file:" says itself whether it does.
    file = re.match(r"sqlite(?:\+\w+)?:///(?!:memory:|file:)([^?]+)", url)
    # SQLAlchemy decodes it since version 2.1.
    if file and not any(Path(place).is_file() for place in (file[1], unquote(file[1]))):
        raise ValueError(f"There is no file of the storage {url!r}; check the path.")
    closing = ExitStack()
    try:
        storage = optuna.storages.RDBStorage(url, skip_table_creation=True)
        closing.callback(storage.engine.dispose)  # Optuna leaves its connections open
        optuna.get_all_study_names(storage)
    except Exception as error:
        closing.close()
        raise _unreadable(url, error) from None
    with closing:
        yield storage


def _unreadable(url: str, error: Exception) -> ValueError:
    """Return an error that says why a storage cannot be read.

    The message of whatever a database driver raises may contain the password.
    """
    reason = error
    if isinstance(error, StorageInternalError) and isinstance(error.__cause__, Exception):
        reason = error.__cause__  # Optuna's own text guesses at a write that failed
    text = _without_passwords(str(reason), url)
    remedy = "a URL such as 'sqlite:///study.db'"
    if "://" not in url:  # a file
        remedy += ", MetaDataset.load(…) of a file of `dre import`, or from_table(…) of a table"
    return ValueError(
        f"Cannot read the Optuna storage {_hidden(url)!r} ({type(reason).__name__}: "
        f"{text[:300]}); give {remedy}."
    )


def _hidden(url: str) -> str:
    """Return a URL without its password."""
    return _without_passwords(url, url)


def _without_passwords(text: str, url: str) -> str:
    for match in _PASSWORD.finditer(url):
        text = text.replace(match["first"] or match["second"], "***")
    return text


def tasks_before(storage: BaseStorage, time: datetime, *, without: str) -> list[Task]:
    """Return the studies of a storage at a time, the one with the latest trial first.

    As in a memory, those with fewer than `MIN_TRIALS` trials are left out.
    """
    dated: list[tuple[datetime, Task]] = []
    for name, load in _stored_in(storage):
        if name == without:
            continue
        try:
            study = load()
            trials = _ended(study, time)
        except KeyError:  # deleted since the names were read
            continue
        task = _task(study, trials, Counter()) if len(trials) >= MIN_TRIALS else None
        if task is not None and task.n_complete and task.lists():
            dated.append((max(_without_zone(t.datetime_complete) for t in trials), task))
    return [task for _, task in sorted(dated, key=lambda pair: pair[0], reverse=True)]


def _ended(study: optuna.Study, before: datetime | None = None) -> list[FrozenTrial]:
    """Return the trials of a study that have ended, at any time or before one."""
    trials = study.get_trials(deepcopy=False, states=_ENDED)
    if before is None:
        return trials
    end = _without_zone(before)
    return [t for t in trials if t.datetime_complete and _without_zone(t.datetime_complete) < end]


def _without_zone(time: datetime | None) -> datetime:
    """Return a local time that can be compared with any other; other programs may write zones."""
    return datetime.min if time is None else time.astimezone().replace(tzinfo=None)


def _task(
    study: optuna.Study | AskTell, trials: list[FrozenTrial], skipped: Counter[str]
) -> Task | None:
    """Return trials of a study as a task, or None and a count why not."""
    if len(study.directions) > 1:
        skipped["study with several objectives"] += 1
        return None
    if isinstance(study, AskTell):
        return study.task()
    try:
        space, _, history = read(trials, study.directions)
        n_unreadable = len(trials) - len(history)
        if n_unreadable:
            skipped["trial with a value that its parameter cannot have"] += n_unreadable
        if not space.domains:
            for trial in trials:
                for name, distribution in trial.distributions.items():
                    domain_of(name, distribution)  # says why it cannot be searched
        return Task.from_trials(study.study_name, space, history)
    except ValueError as error:  # a parameter that cannot be searched: the text names it
        skipped[f"study that cannot be used: {error}"] += 1
        return None
