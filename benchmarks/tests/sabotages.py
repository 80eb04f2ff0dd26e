"""Ways to make search worse, to see which of them the gate notices.

python benchmarks/tests/sabotages.py [NAME …] [--seeds 0 1 2 3] [--studies]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from dre_bench import gate
from dre_plugins.engine import get_preset, surrogate
from dre_plugins.engine.acquisition import ACQUISITIONS
from dre_plugins.engine.settings import PRESETS
from dre_plugins.recommend import Recommender, members, search
from dre_plugins.recommend.proposers import ensemble

DEFAULT = get_preset("default")


@contextmanager
def preset(**changes: Any) -> Iterator[None]:
    """Search with another default preset."""
    with patch.dict(PRESETS, default=replace(DEFAULT, **changes)):
        yield


@contextmanager
def fit(change: Callable[[Any], Any]) -> Iterator[None]:
    """Fit by other settings."""
    fitted = surrogate.fit

    def changed(parameters: Any, scorer: Any, fitting: Any, *rest: Any) -> Any:
        return fitted(parameters, scorer, change(fitting), *rest)

    with patch.object(surrogate, "fit", changed):
        yield


@contextmanager
def acquisition(change: Callable[[Any], Any]) -> Iterator[None]:
    """Choose by another acquisition, which is made of the right one."""
    changed = {name: change(right) for name, right in ACQUISITIONS.items()}
    with patch.object(ensemble, "ACQUISITIONS", changed):
        yield


@contextmanager
def weights(change: Callable[[Any], Any]) -> Iterator[None]:
    """Start from other random weights."""
    drawn = surrogate.initial_parameters

    def changed(*arguments: Any) -> Any:
        return {name: change(value) for name, value in drawn(*arguments).items()}

    with patch.object(surrogate, "initial_parameters", changed):
        yield


@contextmanager
def random_ranks() -> Iterator[None]:
    """Rank by chance, whatever was learnt."""

    def ranks(self: Any, units: Any) -> torch.Tensor:
        n_members = sum(len(reference) for reference in self._reference)
        rng = np.random.default_rng(len(units))
        drawn = rng.random((n_members, len(units))) * self.n_reference
        return torch.from_numpy(drawn.astype(np.float32))

    with patch.object(members.Mixture, "ranks", ranks):
        yield


@contextmanager
def other_seeds() -> Iterator[None]:
    """Draw other weights and candidates: no worse, but nothing is the same."""
    made = Recommender.__init__

    def changed(self: Any, *arguments: Any, seed: int, **keywords: Any) -> None:
        made(self, *arguments, seed=seed + 1000, **keywords)

    with patch.object(Recommender, "__init__", changed):
        yield


def steps(share: float) -> Any:
    return fit(lambda settings: replace(settings, n_steps=max(1, round(share * settings.n_steps))))


def rate(share: float) -> Any:
    return fit(lambda settings: replace(settings, learning_rate=share * settings.learning_rate))


def jitter(value: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(value.shape))
    return value * (1 + 1e-6 * torch.randn(value.shape, generator=generator))


# What a user would not want, and two changes that are no change of quality.
SABOTAGES: dict[str, Callable[[], Any]] = {
    "random ranks": random_ranks,
    "acquisition upside down": lambda: acquisition(lambda right: lambda r, i: -right(r, i)),
    "a random acquisition": lambda: acquisition(
        lambda _: lambda r, __: torch.rand(r.shape[1], generator=torch.Generator().manual_seed(0))
    ),
    "a tenth of the steps": lambda: steps(0.1),
    "a quarter of the steps": lambda: steps(0.25),
    "half the steps": lambda: steps(0.5),
    "a tenth of the learning rate": lambda: rate(0.1),
    "one member": lambda: preset(scorer=replace(DEFAULT.scorer, n_members=1)),
    "3 members": lambda: preset(scorer=replace(DEFAULT.scorer, n_members=3)),
    "first layer as torch draws it": lambda: preset(first_slope=None),
    "no evolution of candidates": lambda: patch.multiple(search, N_ROUNDS=0, N_SOBOL=64),
    "the paper's acquisition": lambda: acquisition(lambda _: ACQUISITIONS["ei"]),
    "only exploit": lambda: acquisition(lambda _: ACQUISITIONS["average-rank"]),
    "other seeds": other_seeds,
    "rounding errors": lambda: weights(jitter),
}


def verdicts(
    name: str, seeds: Sequence[int] = gate.QUICK_SEEDS, *, with_studies: bool = False
) -> list[gate.Verdict]:
    """Return what the gate says of a sabotage."""
    with SABOTAGES[name]():
        found = gate.measured(gate.runs_of(seeds, with_studies=with_studies))
    return gate.compare(gate.read_figures(), found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[*SABOTAGES])
    parser.add_argument("--seeds", type=int, nargs="+", default=[*gate.QUICK_SEEDS])
    parser.add_argument("--studies", action="store_true")
    options = parser.parse_args()
    for name in options.names:
        found = verdicts(name, options.seeds, with_studies=options.studies)
        is_caught = any(verdict.is_worse for verdict in found)
        print(f"{name}: {'caught' if is_caught else 'not caught'}", flush=True)
        print(*(f"    {verdict}" for verdict in found), sep="\n", flush=True)


if __name__ == "__main__":
    main()
