"""Table files of HPO-B, written from metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dre_plugins.transfer.metadata import MetaDataset


def write_hpob(metadata: Mapping[str, MetaDataset], path: Path) -> None:
    """Write the tasks of each search space, with the features of configurations as `X`."""
    tree = {
        name: {
            task.name: {
                "X": task.space.features(task.units).tolist(),
                "y": task.values[:, None].tolist(),
            }
            for task in tasks
        }
        for name, tasks in metadata.items()
    }
    path.write_text(json.dumps(tree))
