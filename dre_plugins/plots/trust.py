"""The weight of the prior over a study, and where its trials came from."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from dre_plugins.engine.settings import require
from dre_plugins.plots.studies import Study, explanations_of
from dre_plugins.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    count_along,
    new_panel,
)

# Sources differ by their marks as well, for readers who do not see the colours.
LOOK_OF = {
    "prior": (PINK, "*"),
    "model": (BLUE, "o"),
    "universal-prior": (BLUE, "d"),
    "exploration": (SKY, "D"),
    "contrast": (ORANGE, "s"),
    "random": (GREEN, "^"),
    "fallback": (RED, "X"),
    "exhausted": (RED, "P"),
    "independent": (GREY, "v"),
    "enqueued": (GREY, ">"),
    "unknown": (GREY, "."),
}
# Where trials stand that no prior had a part in.
NOWHERE = -0.12


def plot_prior_trust(study: Study) -> Axes:
    """Plot the weight of the prior in the ensemble at each trial, marked by the trial's source.

    It is read from the explanations of the trials. Trials in which the prior had no part
    stand below the axis of weights.

    Args:
        study: A study of `DRESampler` or an `AskTell`, with a prior.

    Raises:
        ValueError: If no trial has the weight of a prior.
    """
    explained = explanations_of(study)
    weights = {
        n: explanation.prior_weight
        for n, explanation in explained.items()
        if explanation.prior_weight is not None
    }
    require(
        bool(weights),
        "study",
        f"{len(explained)} trials, none of which tells the weight of a prior",
        "of DRESampler(prior=…) or DRESampler(past_studies=…)",
    )
    panel = new_panel()
    panel.plot([*weights], [*weights.values()], "-", lw=1.2, color=GREY, zorder=1)
    for source, (colour, mark) in LOOK_OF.items():
        numbers = [n for n, explanation in explained.items() if explanation.source == source]
        if numbers:
            heights = [weights.get(number, NOWHERE) for number in numbers]
            size = 11 if mark == "*" else 6
            panel.plot(numbers, heights, mark, ms=size, color=colour, label=source, zorder=2)
    shares = np.linspace(0, 1, 6)
    percent = [f"{share:.0%}" for share in shares]
    if len(weights) < len(explained):
        panel.axhline(NOWHERE / 2, color=GREY, lw=0.6, ls=":")
        panel.set_yticks([NOWHERE, *shares], ["no part", *percent])
    else:
        panel.set_yticks(shares, percent)
    panel.set(title="Weight of the prior", xlabel="trial", ylabel="members from the prior")
    panel.set_ylim(top=1.06)
    count_along(panel)
    panel.grid(axis="y", alpha=0.3)
    panel.figure.legend(loc="outside right upper", title="source", frameon=False)
    return panel
