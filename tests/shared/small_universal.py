"""Small universal priors with random weights, their files, and targets as a study has them."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save_file

from dre_plugins.universal.file import FORMAT, VERSION
from dre_plugins.universal.network import UniversalPrior, UniversalSettings
from dre_plugins.universal.targets import both_targets

TINY = UniversalSettings(n_processes=1, width=4, n_refinements=1)


def untrained(
    settings: UniversalSettings = TINY, seed: int = 0, scale: float = 1.0
) -> UniversalPrior:
    prior, generator = UniversalPrior(settings), torch.Generator().manual_seed(seed)
    for layer in prior.modules():
        if isinstance(layer, torch.nn.Linear):
            bound = scale * layer.in_features**-0.5
            torch.nn.init.uniform_(layer.weight, -bound, bound, generator)
            torch.nn.init.zeros_(layer.bias)
    return prior


def write(path: Path, prior: UniversalPrior) -> None:
    settings = json.dumps(asdict(prior.settings))
    header = {"format": FORMAT, "version": str(VERSION), "settings": settings}
    save_file(prior.float().state_dict(), path, header)


def blended(values: torch.Tensor) -> torch.Tensor:
    """Return the targets of each list of values `[..., N]`."""
    rows = [both_targets(row, row)[0].values for row in values.reshape(-1, values.shape[-1])]
    return torch.stack(rows).reshape(values.shape)
