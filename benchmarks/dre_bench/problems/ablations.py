"""The ablations of the paper and of its thesis: every variant of ours changes one thing.

Variants are run on tables (`ablation:NAME`; suites "ablation-losses", …). Their priors are
meta-trained on the training split with the settings of those that ship, once, and kept in the
benchmark's folder of priors; variants that differ in the search alone share one.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

import dre_plugins
from dre_bench.names import entry_of
from dre_bench.runs import Sources
from dre_bench.table_contexts import contexts_of, in_contexts
from dre_bench.tables import tables_of
from dre_plugins.engine.settings import PRESETS
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.training import SCORER


@dataclass(frozen=True)
class Variant:
    """Describe what differs from the default.

    Attributes:
        scorer: Fields of `ScorerSettings`, of the prior and of untrained members.
        training: Fields of `MetaTrainingSettings`; None: no meta-training, random weights.
        fine_tuning: Fields of `FittingSettings`, from the prior.
        fitting: Fields of `FittingSettings`, from random weights.
        search: Fields of `RecommenderSettings`.
        own_context: Whether members read the context of the study alone, as in the paper, and not
            those of past tasks.
    """

    scorer: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] | None = field(default_factory=dict)
    fine_tuning: Mapping[str, Any] = field(default_factory=dict)
    fitting: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    own_context: bool = False

    @property
    def settings(self) -> RecommenderSettings:
        """Return how it searches."""
        default = PRESETS["default"]
        scorer = {name: value for name, value in self.scorer.items() if name != "context"}
        preset = replace(
            default,
            scorer=replace(default.scorer, **scorer),
            from_random=replace(default.from_random, **self.fitting),
            from_prior=replace(default.from_prior, **self.fine_tuning),
            universal_turns=False,
        )
        return RecommenderSettings(n_startup_trials=0, preset=preset, **self.search)

    @property
    def meta_training(self) -> MetaTrainingSettings:
        """Return how its prior is meta-trained."""
        return MetaTrainingSettings(**(self.training or {}))

    def file(self, sources: Sources, scenario: str) -> str:
        """Return a name for what its prior depends on: who shares it shares a prior."""
        where = [scenario, str(sources.data), str(sources.hpob), dre_plugins.__version__]
        taught = [asdict(replace(SCORER, **self.scorer)), asdict(self.meta_training), where]
        number = zlib.crc32(json.dumps(taught, sort_keys=True).encode())
        return f"{re.sub(r'[^A-Za-z0-9]+', '-', scenario)}-{number:08x}.safetensors"


def _loss(name: str) -> Variant:
    loss = {"loss": name}
    return Variant(training=loss, fine_tuning=loss, fitting=loss)


def _acquisition(name: str) -> Variant:
    return Variant(search={"acquisition": name})


DEFAULT = "default"
# By what they vary; each is a suite of its own, see `dre_bench.suites`.
GROUPS: Mapping[str, Mapping[str, Variant]] = {
    "losses": {
        "loss-inverse-linear": _loss("weighted-list-mle-inverse-linear"),
        "loss-position-attention": _loss("weighted-list-mle-position-attention"),
        "loss-list": _loss("list-mle"),  # no weights
    },
    "acquisitions": {
        "acquisition-ei": _acquisition("ei"),
        "acquisition-lcb": _acquisition("lcb"),
        "acquisition-average-rank": _acquisition("average-rank"),
        "acquisition-pi": _acquisition("pi"),
        "acquisition-thompson": _acquisition("thompson"),
    },
    "meta-features": {
        "no-meta-features": Variant(scorer={"context": None}),
        "own-context": Variant(own_context=True),
    },
    "fine-tuning": {
        "no-fine-tuning": Variant(fine_tuning={"n_steps": 0}),
        "fine-tuning-short": Variant(fine_tuning={"n_steps": 100, "learning_rate": 0.005}),
        "no-meta-training": Variant(training=None),
    },
    "scorer": {
        "scorer-2-layers": Variant(scorer={"hidden": (32, 32)}),
        "scorer-64-wide": Variant(scorer={"hidden": (64, 64, 64, 64)}),
    },
    "ensemble": {
        "members-1": Variant(scorer={"n_members": 1}),
        "members-5": Variant(scorer={"n_members": 5}),
        "members-20": Variant(scorer={"n_members": 20}),
    },
    "lists": {
        "lists-of-20": Variant(training={"list_length": 20}),
        "lists-of-300": Variant(training={"list_length": 300}),
    },
    "range": {"range-controller": Variant(scorer={"range_limit": 2.0})},
}
VARIANTS: Mapping[str, Variant] = {
    DEFAULT: Variant(),
    **{name: variant for group in GROUPS.values() for name, variant in group.items()},
}


def variant_of(name: str) -> Variant:
    """Return a variant by its name; a ValueError says that there is none."""
    return entry_of(VARIANTS, "ablation", name)


@cache
def trained(sources: Sources, scenario: str, name: str) -> Prior | None:
    """Return the prior of a variant, meta-trained on the training split; None without one.

    Processes that need the same one wait for the first of them.

    Raises:
        ValueError: There is no folder for it, or no training task.
    """
    variant = variant_of(name)
    if variant.training is None:
        return None
    if sources.priors is None:
        raise ValueError("priors must be the folder where meta-trained priors are kept, got None.")
    sources.priors.mkdir(parents=True, exist_ok=True)
    path = sources.priors / variant.file(sources, scenario)
    contexts = path.with_suffix(".npy")
    with FileLock(f"{path}.lock"):
        if not (path.exists() and contexts.exists()):
            _train(sources, scenario, variant, path, contexts)
    prior = Prior.load(path)
    return prior if variant.own_context else in_contexts(prior, np.load(contexts))


def _train(sources: Sources, scenario: str, variant: Variant, path: Path, contexts: Path) -> None:
    """Write the prior of a variant, and the contexts of its training tasks."""
    tables = tables_of(sources, scenario)
    training, validation = tables.metadata("train"), tables.metadata("validation")
    prior = Prior.train(
        training,
        validation=validation if len(validation) else None,
        scorer=replace(SCORER, **variant.scorer),
        settings=variant.meta_training,
    )
    np.save(contexts, contexts_of(prior, training))
    prior.save(path)
