"""Train priors on a part of the evaluations, and measure them on data sets held out.

    PYTHONPATH=.:benchmarks:lab python lab/learner_data.py run runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/learner_data.py report runs.jsonl

Parts: all evaluations of the other data sets, the first half or quarter of each data set's, and
all evaluations of every second data set. A line has, for one data set by one metric, the rank
correlation of the prior's scores with the values, and the regret of the best of the one and five
configurations with the highest scores among those that were evaluated. Run again to resume.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy.stats import kendalltau

from dre_bench.learner_evaluations.records import append, read
from dre_bench.learner_evaluations.tables import Table, read_tables
from dre_bench.learner_priors import training
from dre_bench.learner_priors.held_out import N_FOLDS
from dre_bench.learner_priors.tasks import LEARNERS, Tables, metadata_of, tables_of
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.prior import Prior

EVALUATIONS = Path("benchmarks/data/learner_evaluations/evaluations.npz")
PARTS = ("all", "half of each data set", "quarter of each data set", "half of the data sets")


def parts_of(tables: Tables, name: str, part: str, others: list[int]) -> Tables:
    """Return the tables of a learner with the rows that its prior learns from."""
    found = {int(i) for table in tables_of(name, tables) for i in np.unique(table.dataset)}
    known = sorted(found & set(others))
    return {key: part_of(table, part, known) for key, table in tables.items()}


def part_of(table: Table, part: str, others: list[int]) -> Table:
    """Return the rows of a table that a prior learns from."""
    keep = np.isin(table.dataset, others[::2] if part == PARTS[3] else others)
    share = {PARTS[1]: 0.5, PARTS[2]: 0.25}.get(part, 1.0)
    for dataset in others:
        rows = np.flatnonzero(table.dataset == dataset)
        in_order = rows[np.argsort(table.position[rows], kind="stable")]
        keep[in_order[int(np.ceil(share * len(rows))) :]] = False
    fields = ("configurations", "dataset", "position", "status", "seconds")
    metrics = {name: values[keep] for name, values in table.metrics.items()}
    return replace(table, metrics=metrics, **{name: getattr(table, name)[keep] for name in fields})


def trained(name: str, datasets: list[str], tables: Tables) -> Prior:
    """Train a prior as those that ship, without a portfolio."""
    metadata = metadata_of(name, datasets, tables)
    return Prior.train(
        training.without_validation(metadata),
        validation=training.validation_of(metadata),
        name=name,
        scorer=training.SCORER,
        settings=training.SETTINGS,
        n_threads=1,
    )


def measured(prior: Prior, metadata: MetaDataset) -> list[dict]:
    """Measure a prior on tasks that it has not learnt from."""
    found, rng = [], np.random.default_rng(0)
    for task in metadata:
        ok = np.isfinite(task.values)
        values, spread = task.values[ok], np.ptp(task.values[ok]) if ok.any() else 0.0
        if ok.sum() < 10 or spread == 0:
            continue
        scores = prior.scores(task.space, task.units[ok])
        best, scale = values.max(), values.max() - np.median(values)
        regret = np.minimum((best - values[np.argsort(-scores)]) / (scale or spread), 2.0)
        found.append(
            {
                "task": task.name,
                "n": int(ok.sum()),
                "tau": float(kendalltau(scores, values).statistic),
                "regret1": float(regret[0]),
                "regret5": float(regret[:5].min()),
                "random5": float(np.mean([rng.choice(regret, 5).min() for _ in range(100)])),
            }
        )
    return found


def run(out: Path) -> None:
    """Append what is not in the file yet."""
    torch.set_num_threads(1)
    datasets, tables = read_tables(EVALUATIONS)
    done = {(line["prior"], line["fold"], line["part"]) for line in read(out)}
    for fold in range(N_FOLDS):
        held_out = datasets[fold::N_FOLDS]
        others = [i for i, name in enumerate(datasets) if name not in held_out]
        for name in LEARNERS:
            for part in PARTS:
                if (name, fold, part) in done:
                    continue
                prior = trained(name, datasets, parts_of(tables, name, part, others))
                taught = [dataset for dataset in datasets if dataset not in held_out]
                rows = measured(prior, metadata_of(name, datasets, tables, taught))
                append(out, {"prior": name, "fold": fold, "part": part, "tasks": rows})
                print(name, fold, part, len(rows), flush=True)


def report(path: Path) -> None:
    """Print means over learners and data sets, with paired errors against all evaluations."""
    found: dict = defaultdict(dict)
    for line in read(path):
        for task in line["tasks"]:
            dataset = task["task"].rpartition(" by ")[0]
            place = (line["prior"], dataset)
            found[place].setdefault(line["part"], []).append(
                [task[key] for key in ("tau", "regret1", "regret5", "random5")]
            )
    whole = {p: v for p, v in found.items() if all(part in v for part in PARTS)}
    for learner in ("", *LEARNERS):
        places = [p for p in whole if learner in ("", p[0])]
        if not places:
            continue
        print(learner or "all", len(places))
        reference = np.array([np.mean(whole[p][PARTS[0]], axis=0) for p in places])
        for part in PARTS:
            values = np.array([np.mean(whole[p][part], axis=0) for p in places])
            change = values - reference
            error = change.std(axis=0, ddof=1) / np.sqrt(len(places)) if len(places) > 1 else 0
            print(f"  {part:26}", np.round(values.mean(0), 3), "±", np.round(error, 3))


if __name__ == "__main__":
    {"run": run, "report": report}[sys.argv[1]](Path(sys.argv[2]))
