"""Small universal priors with random weights, their files, and targets as a study has them."""

import json
from collections.abc import Mapping
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


def write(
    path: Path,
    prior: UniversalPrior,
    changed: Mapping[str, torch.Tensor | None] | None = None,
    **header: str | None,
) -> Path:
    """Write a file with changes to its tensors and its header; None leaves a part out."""
    settings = json.dumps(asdict(prior.settings))
    texts = {"format": FORMAT, "version": str(VERSION), "settings": settings, **header}
    tensors = {**prior.float().state_dict(), **(changed or {})}
    present = {name: value for name, value in tensors.items() if value is not None}
    save_file(present, path, {key: text for key, text in texts.items() if text is not None})
    return path


def blended(values: torch.Tensor) -> torch.Tensor:
    """Return the targets of each list of values `[..., N]`."""
    rows = [both_targets(row, row)[0].values for row in values.reshape(-1, values.shape[-1])]
    return torch.stack(rows).reshape(values.shape)
