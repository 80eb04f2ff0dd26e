"""Save tuners of Syne Tune atomically, and load tuners that were killed."""

import pickle
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from syne_tune import Tuner
from syne_tune.backend import LocalBackend
from syne_tune.constants import ST_TUNER_DILL_FILENAME

from dre_plugins.adapters.syne_tune.history import logger, searcher_in


class DurableTuner(Tuner):  # type: ignore[misc]
    """A tuner of Syne Tune whose saved state is always whole.

    `Tuner` overwrites its old state, so that nothing can be loaded if it is killed meanwhile or
    the disk is full. Here the new state replaces the old one when it is complete. If it cannot be
    written, the run goes on with one warning, and `n_unsaved` counts the failures. The arguments
    and everything else are the same.
    """

    n_unsaved = 0

    def save(self, folder: str | None = None) -> None:
        """Write the state atomically.

        Raises:
            OSError: If it cannot be written to the folder that is given.
        """
        place = Path(self.tuner_path if folder is None else folder)
        try:
            with TemporaryDirectory(prefix="unsaved-", dir=place) as unsaved:
                super().save(unsaved)
                (Path(unsaved) / ST_TUNER_DILL_FILENAME).replace(place / ST_TUNER_DILL_FILENAME)
        except OSError as error:  # for example a full disk: the run goes on
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
    """Load a tuner that was killed; `run` continues from its last save.

    `Tuner.load` and `run` forget running trials, and give new trials the numbers of those that
    began after the last save. Here, running trials without a report are suggested again, before
    anything new. The folders of trials that the saved tuner does not know are renamed, because a
    new trial would read their reports as its own.

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
    searcher = searcher_in(tuner.scheduler)
    if searcher is not None:
        searcher.restart_running()
    return tuner
