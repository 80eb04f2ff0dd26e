"""Past tasks from elsewhere into a memory."""

from __future__ import annotations

import time
from collections.abc import Collection

from dre_plugins.memory.memory import Memory
from dre_plugins.memory.priors import digest_of
from dre_plugins.memory.recorded import Header
from dre_plugins.memory.recorder import Recorder
from dre_plugins.transfer.metadata import Task

MAXIMIZE = ("maximize",)  # what values of a `Task` are


def import_task(memory: Memory, task: Task, present: Collection[str]) -> bool:
    """Record a past task as a study, and say whether it was not there.

    Args:
        memory: The memory.
        task: The task.
        present: Identities of the studies that are there.

    Raises:
        OSError: The memory cannot be written.
        ValueError: A value is of a type that no file can hold.
    """
    study = digest_of([task])[:16]
    if study in present:
        return False
    header = Header(study, task.name, "import", MAXIMIZE, time.time())
    recorder = Recorder(memory.records, header)
    for number, trial in enumerate(task.trials()):
        recorder.write(number, trial, task.space)
    return True
