"""Continuous search on HPO-B: XGBoost surrogates of its tables evaluate any configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dre_bench.hpob_files import HpobSurrogates
from dre_bench.runs import Sources
from dre_bench.tasks import Parameter, Scenario, Split

PREFIX = "hpob-surrogate:"
FOLDER = "saved-surrogates"


class HpobScenario(Scenario):
    """A search space of HPO-B, with columns in `[0, 1]` as parameters; tasks are data sets.

    Values are scaled to `[0, 1]` by the range of the data set's table and clipped, as the
    benchmark does; larger is better. All tasks are for testing: nobody learns from surrogates.

    Args:
        folder: The folder `saved-surrogates`.
        space: Search space.

    Raises:
        ValueError: There is no surrogate of it, a file is damaged, or XGBoost is not installed.
    """

    metric = "value"

    def __init__(self, folder: Path, space: str) -> None:
        self._surrogates = HpobSurrogates(folder)
        self._space = space
        pairs = self._surrogates.tasks()
        datasets = [dataset for name, dataset in pairs if name == space]
        if not datasets:
            names = ", ".join(sorted({name for name, _ in pairs})) or "none"
            raise ValueError(f"{str(folder)!r} has no surrogate of {space!r}; it has {names}.")
        try:
            n_features = self._surrogates.n_features(space, datasets[0])
        except ImportError as error:
            raise ValueError(f"scenario {PREFIX + space!r}: {error}") from error
        self.name = PREFIX + space
        self.tasks = sorted(int(dataset) for dataset in datasets)
        self.parameters = tuple(
            Parameter(f"x{column}", "float", 0.0, 1.0) for column in range(n_features)
        )

    @property
    def splits(self) -> dict[Split, list[int]]:
        """Tasks of each split: all of them are for testing."""
        return {"train": [], "validation": [], "test": self.tasks}

    def evaluate_many(
        self, task: int, configurations: Sequence[Mapping[str, Any]]
    ) -> dict[str, NDArray[np.float64]]:
        """Evaluate many configurations on one task: an array ``[N]``."""
        rows = [
            [configuration[parameter.name] for parameter in self.parameters]
            for configuration in configurations
        ]
        X = np.array(rows, dtype=np.float64).reshape(len(rows), len(self.parameters))
        return {self.metric: self._surrogates.evaluate(self._space, str(task), X)}


def hpob_scenario(sources: Sources, name: str) -> HpobScenario:
    """Return the scenario of a name.

    Args:
        sources: Its folder of HPO-B has a folder `saved-surrogates`, is beside one, or is one.
        name: "hpob-surrogate:" and a search space.

    Raises:
        ValueError: There is no such scenario, or its data are missing.
    """
    folder = sources.hpob
    places = [] if folder is None else [folder / FOLDER, folder.parent / FOLDER, folder]
    found = [place for place in places if (place / "summary-stats.json").is_file()]
    if not found:
        raise ValueError(
            f"scenario {name!r} needs the surrogates of HPO-B: name the folder that holds "
            f"{FOLDER}/summary-stats.json with --hpob."
        )
    return HpobScenario(found[0], name.removeprefix(PREFIX))
