"""Tuners of Syne Tune that are killed: whole on the disk at any time, and loaded to go on."""

from __future__ import annotations

import pickle
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from syne_tune import Tuner
from syne_tune.backend import LocalBackend
from syne_tune.constants import ST_TUNER_DILL_FILENAME

from dre_plugins.adapters.syne_tune.history import StudySearcher, logger


class DurableTuner(Tuner):  # type: ignore[misc]
    """A tuner of Syne Tune that has always a whole state on the disk.

    `Tuner` writes its state over the old one, so that nothing can be loaded if it is killed in
    that instant, or the disk is full. Here the new state takes the place of the old one when it is
    written. If it cannot be written, the run goes on: one warning, and `n_unsaved` counts. All
    else is the same, arguments too.
    """

    n_unsaved = 0

    def save(self, folder: str | None = None) -> None:
        """Write the state, at once or not at all.

        Raises:
            OSError: If it cannot be written to the folder that is given.
        """
        place = Path(self.tuner_path if folder is None else folder)
        try:
            with TemporaryDirectory(prefix="unsaved-", dir=place) as unsaved:
                super().save(unsaved)
                (Path(unsaved) / ST_TUNER_DILL_FILENAME).replace(place / ST_TUNER_DILL_FILENAME)
        except OSError as error:  # a full disk must not end a run that can go on
            if folder is not None:
                raise
            self.n_unsaved += 1
            if self.n_unsaved == 1:
                logger.warning(
                    "The tuner could not be saved (%s); the state before is kept, to which "
                    "load_tuner would go back. Further failures are only counted.",
                    error,
                )


def load_tuner(path: str | PathLike[str]) -> Tuner:
    """Load a tuner that was killed, to `run` on from where it was saved last.

    `Tuner.load` and `run` forget what was running, and give new trials the numbers of those that
    were begun after the last save. Here, what was running without a report is suggested again,
    before anything new; and the folders of trials that the saved tuner does not know are renamed,
    because a new trial would read the reports there as its own.

    Args:
        path: Folder of the experiment. How much is lost depends on the `results_update_interval`
            of the tuner: it is saved with the first results after so many seconds.

    Raises:
        FileNotFoundError: If no tuner was saved there.
        ValueError: If it was killed while it saved itself (a `DurableTuner` can be loaded then).
    """
    try:
        tuner = Tuner.load(str(path))
    except (EOFError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"The tuner in {str(path)!r} was killed while it saved itself, and cannot be loaded: "
            f"{error}. To begin anew, DRETransfer learns from its results."
        ) from error
    backend = tuner.trial_backend
    if isinstance(backend, LocalBackend):
        number = backend.new_trial_id()
        while (folder := backend.trial_path(number)).is_dir():
            n_lost = len([*folder.parent.glob(f"{number}.lost*")])
            folder.rename(folder.with_name(f"{number}.lost{n_lost}"))
            number += 1
    scheduler = tuner.scheduler
    searcher = getattr(getattr(scheduler, "scheduler", scheduler), "searcher", None)
    if isinstance(searcher, StudySearcher):
        searcher.restart_running()
    return tuner
