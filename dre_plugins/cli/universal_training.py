"""`dre meta-train --synthetic`: the universal prior, from tasks that are drawn at every step."""

from __future__ import annotations

from pathlib import Path

from dre_plugins.cli.console import console, tracked


def train_universal(
    output: Path, n_steps: int | None, *, seed: int, device: str, n_threads: int
) -> None:
    """Meta-train a universal prior, write it, and say how good it is on lessons of its own.

    Args:
        output: File to write.
        n_steps: Steps of the training; None takes the default.
        seed: Seed of everything random.
        device: Where to compute.
        n_threads: Threads of the CPU.
    """
    import torch

    from dre_plugins.engine.runtime import isolated
    from dre_plugins.universal.file import save
    from dre_plugins.universal.network import UniversalPrior, UniversalSettings
    from dre_plugins.universal.training import (
        UniversalTrainingSettings,
        meta_train_universal,
        validated,
        validation_lessons,
    )

    default = UniversalTrainingSettings()
    settings = default if n_steps is None else UniversalTrainingSettings(n_steps=n_steps)
    size = UniversalSettings()
    with isolated("cpu", n_threads):
        prior = meta_train_universal(
            size,
            settings,
            seed=seed,
            device=device,
            progress=lambda steps: tracked(steps, "meta-training", len(steps)),
        )
        lessons = validation_lessons()
        untrained = UniversalPrior(size, torch.Generator().manual_seed(seed))
        loss, before = validated(prior, lessons), validated(untrained, lessons)
    save(prior, output, f"dre meta-train --synthetic --steps {settings.n_steps} --seed {seed}")
    console().print(
        f"{settings.n_steps} steps: minus the log density of answers on {len(lessons)} lessons "
        f"that were not trained on is {loss:.3f}; {before:.3f} before."
    )
    console().print(f"written to {output}", soft_wrap=True)
