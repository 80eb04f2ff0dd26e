"""HPO-B (Pineda Arango et al., 2021), as in the paper: all 16 search spaces by one command.

    python -m dre_plugins.benchmarks.hpob --data FOLDER --out hpob.jsonl --jobs 8

FOLDER holds the benchmark's own files: meta-train-dataset.json, meta-validation-dataset.json,
meta-test-dataset.json and bo-initializations.json. For each search space a prior is meta-trained
on the training data sets; on each test data set it then chooses 100 configurations after the 5
initial ones of each of the 5 seeds. Regret is the distance to the best configuration of the data
set, as a share of its range. Runs that are in the file already are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dre_plugins.benchmarks.quality import ONE_THREAD, read_records
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.candidates import keys
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.sources.hpob import load_hpob, load_hpob_initialisations

CHECKPOINTS = (5, 10, 25, 50, 75, 100)
NO_PRIOR = "none"

# (search space, data set, initialisation, "prior" or "none", steps, steps of the meta-training)
Key = tuple[str, str, str, str, int, int]

FIELDS = ("space", "dataset", "start", "method", "steps", "training_steps")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the protocol from the command line and print mean regrets."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.hpob",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmark")
    parser.add_argument("--out", type=Path, default=Path("hpob.jsonl"))
    parser.add_argument("--spaces", help="ids, separated by commas; default: all")
    parser.add_argument("--methods", default="prior,none", help="with the prior, or without one")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--training-steps", type=int, default=MetaTrainingSettings().n_steps)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.update(ONE_THREAD)
    chosen = None if options.spaces is None else options.spaces.split(",")
    tests = load_hpob(options.data, split="test", spaces=chosen)
    priors = options.out.with_suffix("")
    priors.mkdir(parents=True, exist_ok=True)
    starts = load_hpob_initialisations(options.data)
    planned: list[Key] = [
        (space, task.name, start, method, options.steps, options.training_steps)
        for space, metadata in tests.items()
        for task in metadata
        for start in starts[space][task.name]
        for method in options.methods.split(",")
    ]
    done = {key_of(record) for record in read_records(options.out)}
    todo = [key for key in planned if key not in done]
    train_one = partial(train, options.data, options.training_steps)
    run_one = partial(run, options.data, priors)
    with (
        ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool,
        options.out.open("a") as file,
    ):
        missing = {key[0]: _path_of(priors, key) for key in todo}
        missing = {space: path for space, path in missing.items() if not path.exists()}
        for line in pool.map(train_one, missing, missing.values()):
            print(line, flush=True)
        for record in pool.map(run_one, todo):
            file.write(json.dumps(record) + "\n")
            file.flush()
    wanted = set(planned)
    print(report([record for record in read_records(options.out) if key_of(record) in wanted]))


def train(data: Path, n_steps: int, space: str, path: Path) -> str:
    """Meta-train the prior of a search space and return a line about it."""
    training = load_hpob(data, split="train", spaces=[space])[space]
    validation = load_hpob(data, split="validation", spaces=[space]).get(space)
    prior = Prior.train(
        training,
        validation=validation if validation is not None and len(validation) else None,
        name=f"hpob-{space}",
        settings=MetaTrainingSettings(n_steps=n_steps),
    )
    prior.save(path)
    return f"space {space}: {training.n_evaluations} evaluations, {prior.card.validation}"


def run(data: Path, priors: Path, key: Key) -> dict[str, Any]:
    """Choose configurations of one data set and return the regret after each."""
    space, dataset, start, method, steps, _ = key
    task = _tests(data, space).subset([dataset]).tasks[0]
    rows = list(load_hpob_initialisations(data)[space][dataset][start])
    values = task.values
    seed = int(start.removeprefix("test")) if start.removeprefix("test").isdigit() else 0
    recommender = Recommender(
        task.space,
        RecommenderSettings(n_startup_trials=0),
        seed=seed,
        prior=None if method == NO_PRIOR else _prior(_path_of(priors, key)),
    )
    row_of = {one: row for row, one in reversed([*enumerate(keys(task.units))])}
    n_initial = len(rows)
    history = [_trial(task.space.to_configuration(task.units[row]), values[row]) for row in rows]
    for index in range(n_initial, min(n_initial + steps, len(row_of))):
        suggestion = recommender.suggest(history, index=index, candidates=task.units)[0]
        rows.append(row_of[keys(suggestion.units[None])[0]])
        history.append(_trial(suggestion.configuration, values[rows[-1]]))
    best = np.maximum.accumulate(values[rows])[n_initial - 1 :]
    regret = (np.nanmax(values) - best) / max(np.nanmax(values) - np.nanmin(values), 1e-12)
    return {**dict(zip(FIELDS, key, strict=True)), "regret": [round(float(r), 6) for r in regret]}


def key_of(record: dict[str, Any]) -> Key:
    """Return what makes a run a different one from others."""
    return tuple(record[name] for name in FIELDS)


def report(records: Sequence[dict[str, Any]]) -> str:
    """Return mean regrets after so many steps, over data sets and seeds, and by search space."""
    lines = [f"{'method':8}{'space':>8}{'runs':>6}" + "".join(f"  @{n:<6}" for n in CHECKPOINTS)]
    for method in dict.fromkeys(record["method"] for record in records):
        own = [record for record in records if record["method"] == method]
        for space in ["all", *dict.fromkeys(record["space"] for record in own)]:
            curves = [r["regret"] for r in own if space in ("all", r["space"])]
            # A data set that is exhausted stays at its last regret.
            means = [np.mean([c[min(n, len(c) - 1)] for c in curves]) for n in CHECKPOINTS]
            figures = "".join(f"{mean:9.4f}" for mean in means)
            lines.append(f"{method:8}{space:>8}{len(curves):>6}{figures}")
    return "\n".join(lines)


def _path_of(priors: Path, key: Key) -> Path:
    return priors / f"{key[0]}-{key[5]}.safetensors"


def _trial(configuration: dict[str, Any], value: float) -> Trial:
    return Trial(configuration, TrialState.COMPLETE, float(value))


@cache
def _tests(data: Path, space: str) -> MetaDataset:
    return load_hpob(data, split="test", spaces=[space])[space]


@cache
def _prior(path: Path) -> Prior:
    return Prior.load(path)


if __name__ == "__main__":
    main()
