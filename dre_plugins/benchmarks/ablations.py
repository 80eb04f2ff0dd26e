"""The paper's ablations, on the table protocol: loss, context, fine-tuning, acquisition, members.

    python -m dre_plugins.benchmarks.ablations --data PATH --out ablations.jsonl --jobs 2

Every variant changes one thing. Priors are meta-trained on the training tasks, with fewer steps
than those that ship, and compared on the validation tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dre_plugins.benchmarks.priors import PRIORS, scenario_metadata
from dre_plugins.benchmarks.quality import ONE_THREAD
from dre_plugins.benchmarks.table import CHECKPOINTS, dre_chooser, regret_curve
from dre_plugins.benchmarks.tasks import YahpoScenario
from dre_plugins.engine.settings import PRESETS
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.training import SCORER


@dataclass(frozen=True)
class Variant:
    """Describe what differs from the default.

    Args:
        scorer: Fields of `ScorerSettings`.
        training: Fields of `MetaTrainingSettings`.
        fitting: Fields of the fine-tuning's `FittingSettings`.
        search: Fields of `RecommenderSettings`.
    """

    scorer: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    fitting: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prior_key(self) -> tuple[str, str]:
        """Return what the meta-training depends on: variants that share it share a prior."""
        return repr(sorted(self.scorer.items())), repr(sorted(self.training.items()))

    @property
    def prior_hash(self) -> str:
        """Return a short name of `prior_key`."""
        return f"{zlib.crc32(repr(self.prior_key).encode()):08x}"


def _loss(name: str) -> Variant:
    return Variant(training={"loss": name}, fitting={"loss": name})


VARIANTS = {
    "default: weighted list, EI of log-rank": Variant(),
    "loss: list": _loss("list-mle"),
    "loss: pair": _loss("rank-net"),
    "loss: point": _loss("subset-regression"),
    "loss: regression": _loss("mse"),
    "no meta-features": Variant(scorer={"context": None}),
    "no fine-tuning": Variant(fitting={"n_steps": 0}),
    "fine-tuning at 0.005, 100 steps": Variant(fitting={"n_steps": 100, "learning_rate": 0.005}),
    "acquisition: EI": Variant(search={"acquisition": "ei"}),
    "acquisition: LCB": Variant(search={"acquisition": "lcb"}),
    "acquisition: average rank": Variant(search={"acquisition": "average-rank"}),
    "5 members": Variant(scorer={"n_members": 5}),
    "2 layers": Variant(scorer={"hidden": (32, 32)}),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ablations from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.ablations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--prior", choices=PRIORS, default="xgboost")
    parser.add_argument("--training-steps", type=int, default=3000)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("ablations.jsonl"))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.update(ONE_THREAD)
    folder = options.data / PRIORS[options.prior][0]
    priors = options.out.with_suffix("")
    priors.mkdir(parents=True, exist_ok=True)
    paths = {
        variant.prior_key: priors
        / f"{options.prior}-{options.training_steps}-{variant.prior_hash}.safetensors"
        for variant in VARIANTS.values()
    }
    firsts = {paths[v.prior_key]: v for v in reversed(VARIANTS.values())}
    train_one = partial(_train, folder, options.training_steps)
    runs = [
        (name, task, seed)
        for name in VARIANTS
        for seed in range(options.seeds)
        for task in YahpoScenario(folder).splits["validation"]
    ]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        missing = {path: v for path, v in firsts.items() if not path.exists()}
        list(pool.map(train_one, missing.values(), missing))
        run_one = partial(_run, folder, options.steps)
        own = [paths[VARIANTS[name].prior_key] for name, _, _ in runs]
        with options.out.open("w") as file:
            for (name, task, seed), regret in zip(runs, pool.map(run_one, runs, own), strict=True):
                record = {"variant": name, "task": task, "seed": seed, "regret": regret}
                file.write(json.dumps(record) + "\n")
    print(report([json.loads(line) for line in options.out.read_text().splitlines()]))


def report(records: Sequence[Mapping[str, Any]]) -> str:
    """Return a table: mean regret of each variant, and the paired difference from the default."""
    shown = [n for n in CHECKPOINTS if n <= len(records[0]["regret"])]
    curves = {
        name: np.array([one["regret"] for one in records if one["variant"] == name])
        for name in VARIANTS
    }
    default = curves[next(iter(VARIANTS))]
    lines = [f"{'variant':42}" + "".join(f"@{n:<7}" for n in shown) + "difference at the end"]
    for name, own in curves.items():
        difference = own[:, shown[-1] - 1] - default[:, shown[-1] - 1]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        figures = "".join(f"{own[:, n - 1].mean():<8.4f}" for n in shown)
        lines.append(f"{name:42}{figures}{difference.mean():+.4f} ± {error:.4f}")
    return "\n".join(lines)


def _train(folder: Path, n_steps: int, variant: Variant, path: Path) -> None:
    scenario = YahpoScenario(folder)
    settings = MetaTrainingSettings(**{"n_steps": n_steps, **variant.training})
    prior = Prior.train(
        scenario_metadata(scenario, "train"),
        validation=scenario_metadata(scenario, "validation"),
        scorer=replace(SCORER, **variant.scorer),
        settings=settings,
    )
    prior.save(path)


def _run(folder: Path, steps: int, run: tuple[str, int, int], path: Path) -> list[float]:
    name, task, seed = run
    variant, default = VARIANTS[name], PRESETS["default"]
    preset = replace(default, from_prior=replace(default.from_prior, **variant.fitting))
    choose = dre_chooser({"preset": preset, **variant.search}, _prior(path))
    return regret_curve(folder, task, seed, steps, choose)


@cache
def _prior(path: Path) -> Prior:
    return Prior.load(path)


if __name__ == "__main__":
    main()
