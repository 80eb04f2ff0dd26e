"""Tables of HPO-B (Pineda Arango et al., 2021), one search space at a time.

Test data sets begin with the rows that the benchmark gives for its seeds; for others they are
drawn. The file of a split is parsed once a process, with all search spaces in it: that takes
longest by far.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from dre_bench.hpob_files import load_hpob, load_hpob_initialisations
from dre_bench.runs import Sources
from dre_bench.tables import MetaTables
from dre_bench.tasks import Split
from dre_plugins.transfer.metadata import MetaDataset


def read(sources: Sources, space: str) -> MetaTables:
    """Return the tables of a search space; a split is read when it is asked for.

    Raises:
        ValueError: The files are missing, or there is no such search space.
    """
    folder = _folder(sources)
    starts = load_hpob_initialisations(folder)
    if space not in starts:
        raise ValueError(f"HPO-B has no search space {space!r}; it has {', '.join(starts)}.")
    given = {name: _by_seed(rows) for name, rows in starts[space].items()}
    return MetaTables(partial(_metadata, folder, space), given)


def spaces(sources: Sources) -> list[str]:
    """Return the search spaces that have test data sets.

    Raises:
        ValueError: The files are missing.
    """
    return [*_tables(_folder(sources), "test")]


def _folder(sources: Sources) -> Path:
    if sources.hpob is None or not sources.hpob.is_dir():
        given = "" if sources.hpob is None else f"; there is no folder {str(sources.hpob)!r}"
        raise ValueError(
            "tables of HPO-B need its files: name the folder that holds meta-test-dataset.json "
            f"with --hpob{given}."
        )
    return sources.hpob


def _metadata(folder: Path, space: str, split: Split) -> MetaDataset:
    tables = _tables(folder, split)
    if space not in tables and split != "validation":  # some have no data set to validate with
        raise ValueError(
            f"the {split} file of HPO-B has no search space {space!r}; it has {', '.join(tables)}."
        )
    return tables.get(space, MetaDataset(()))


@cache
def _tables(folder: Path, split: Split) -> dict[str, MetaDataset]:
    return load_hpob(folder, split=split)


def _by_seed(rows: Mapping[str, list[int]]) -> list[list[int]]:
    """Return the rows of "test0", "test1", … "test10", in this order."""
    return [rows[seed] for seed in sorted(rows, key=lambda seed: (len(seed), seed))]
