"""Settings of the engine, validated where they are built, and the presets made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dre_plugins.checks import require

ACTIVATIONS = ("relu", "silu")

# Named here, without torch, so that a sampler can check its arguments; `engine.losses` and
# `engine.acquisition` have the functions.
LOSS_NAMES = (
    "weighted-list-mle",
    "weighted-list-mle-inverse-linear",
    "weighted-list-mle-position-attention",
    "list-mle",
)
ACQUISITION_NAMES = ("log-rank-ei", "ei", "pi", "lcb", "average-rank", "thompson")
# Acquisitions of the default preset. The others were no better in whole spaces
# (docs/decisions/log-rank-improvement.md); another preset may use them.
DEFAULT_ACQUISITIONS = ("log-rank-ei", "ei")
# More threads than cores only wait, and OpenMP ends the process if it cannot start them.
MAX_THREADS = 1024


class FittingError(RuntimeError):
    """Say that a fit ended in weights that are not finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Describe the Deep Set that makes a context vector of a support set (paper, section 3.3).

    Args:
        hidden: Width of every layer of the encoder φ and of the decoder ρ (three layers each).
        size: Length Z of the context vector that is concatenated to every configuration.
    """

    hidden: int = 32
    size: int = 16

    def __post_init__(self) -> None:
        require(self.hidden >= 1, "hidden", self.hidden, "at least 1")
        require(self.size >= 1, "size", self.size, "at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerSettings:
    """Describe the scorers s(x, z; θ) of an ensemble (section 3.1 of the paper).

    Args:
        n_members: Number of scorers M.
        hidden: Width of each hidden layer.
        activation: "relu" or "silu".
        range_limit: Limit k of the range controller k·tanh(α·s); `None` turns it off.
        range_slope: Slope α of the range controller.
        centred: Whether scorers read features as 2x − 1. Features lie in [0, 1]; random networks
            vary more, and learn faster, around 0.
        context: Deep Set of meta-features, or `None` for scorers that read the configuration only.
    """

    n_members: int = 10
    hidden: tuple[int, ...] = (32, 32, 32, 32)
    activation: str = "relu"
    range_limit: float | None = 2.0
    range_slope: float = 0.01
    centred: bool = False
    context: ContextSettings | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # a list would not be hashable
        widths = (self.n_members, *self.hidden)
        are_integers = all(type(width) is int for width in widths)
        require(are_integers, "n_members and hidden", widths, "integers")
        require(self.n_members >= 1, "n_members", self.n_members, "at least 1")
        are_widths = len(self.hidden) >= 1 and min(self.hidden) >= 1
        require(are_widths, "hidden", self.hidden, "one or more widths of at least 1")
        is_known = self.activation in ACTIVATIONS
        require(is_known, "activation", self.activation, f"one of {ACTIVATIONS}")
        is_limit = self.range_limit is None or self.range_limit > 0
        require(is_limit, "range_limit", self.range_limit, "positive or None")
        require(self.range_slope > 0, "range_slope", self.range_slope, "positive")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ScorerSettings:
        """Build the settings from what `asdict` returned, possibly through JSON."""
        context = values["context"]
        settings = None if context is None else ContextSettings(**context)
        return cls(**{**values, "context": settings})


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingSettings:
    """Describe one fit: full batch, Adam, cosine annealing of the learning rate to zero.

    Args:
        n_steps: Number of Adam steps.
        learning_rate: Learning rate of the first step.
        beta2: Decay of Adam's mean of squared gradients.
        loss: Name of a loss in `engine.losses.LOSSES`.
        support_share: Share of a list that the context is computed from while fitting, at
            least one entry; lists of fewer than 5 entries are support and query at once.
        full_length: Length of the longest list from which on all steps are taken. A shorter one
            takes a share of them in proportion, so that few observations do not undo a prior.
    """

    n_steps: int
    learning_rate: float
    beta2: float = 0.999
    loss: str = "weighted-list-mle"
    support_share: float = 0.2
    full_length: int = 1

    def __post_init__(self) -> None:
        require(self.full_length >= 1, "full_length", self.full_length, "at least 1")
        require(self.n_steps >= 0, "n_steps", self.n_steps, "at least 0")
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "positive")
        require(0 <= self.beta2 < 1, "beta2", self.beta2, "at least 0 and below 1")
        require(self.loss in LOSS_NAMES, "loss", self.loss, f"one of {LOSS_NAMES}")
        require(0 < self.support_share < 1, "support_share", self.support_share, "between 0 and 1")


def check_device(device: str) -> None:
    """Raise a ValueError unless torch can compute on `device`; "cpu" does not import torch."""
    if device == "cpu":
        return
    try:
        import torch

        torch.empty(0, device=torch.device(device))  # None would be the default device
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(
            f"device must be one that torch can use here, such as 'cpu', got {device!r} ({error})."
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Bundle all that defines a surrogate.

    Args:
        scorer: The ensemble.
        from_random: How to fit when the scorers start from a random initialisation (DRE-RI).
        from_prior: How to fine-tune when they start from a meta-trained prior.
        acquisition: Name of the ensemble's acquisition function, one of `ACQUISITION_NAMES`.
        first_slope: Slope of the first layer of random members, see `scorers.axis_aligned_layer`.
            None draws it like the other layers.
        tempering: Factor by which errors of predicted ranks exceed the disagreement of members.
            Reported standard errors are multiplied by it; acquisitions are not.
        universal_turns: Whether the universal prior takes turns if `prior` is not None. False is
            the ensemble alone.
    """

    scorer: ScorerSettings
    from_random: FittingSettings
    from_prior: FittingSettings
    acquisition: str = "log-rank-ei"
    first_slope: float | None = None
    tempering: float = 1.0
    universal_turns: bool = True

    def __post_init__(self) -> None:
        is_known = self.acquisition in ACQUISITION_NAMES
        require(is_known, "acquisition", self.acquisition, f"one of {ACQUISITION_NAMES}")
        require(self.tempering > 0, "tempering", self.tempering, "positive")
        is_slope = self.first_slope is None or self.first_slope > 0
        require(is_slope, "first_slope", self.first_slope, "positive or None")


PRESETS: Mapping[str, Preset] = {
    # Khazi et al. 2023, section 4.3 and appendix B; range controller and cosine annealing from
    # the thesis that the paper grew out of (sections 4.1 and 4.3.2).
    "paper": Preset(
        scorer=ScorerSettings(context=ContextSettings()),
        from_random=FittingSettings(n_steps=1000, learning_rate=0.02),
        from_prior=FittingSettings(n_steps=1000, learning_rate=0.001),
        acquisition="ei",
        universal_turns=False,
    ),
    "default": Preset(
        scorer=ScorerSettings(activation="silu", range_limit=None, centred=True),
        from_random=FittingSettings(n_steps=115, learning_rate=0.045, beta2=0.95),
        from_prior=FittingSettings(n_steps=200, learning_rate=0.02, full_length=20),
        first_slope=8.0,
        tempering=3.0,
    ),
}


def get_preset(preset: str | Preset) -> Preset:
    """Return the preset itself, or that of a name; a ValueError says that there is none."""
    if isinstance(preset, Preset):
        return preset
    is_name = isinstance(preset, str) and preset in PRESETS
    require(is_name, "preset", preset, f"one of {sorted(PRESETS)} or a Preset")
    return PRESETS[preset]
