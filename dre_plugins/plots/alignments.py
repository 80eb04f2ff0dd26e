"""Which parameters of a search space a prior knows."""

from __future__ import annotations

import os

from matplotlib.axes import Axes

from dre_plugins.plots.studies import Study, history_of
from dre_plugins.plots.style import GREEN, GREY, ORANGE, PINK, SKY, ink, new_panel, plain
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.spaces.alignment import Alignment

NOBODY = "–"
LEARNT = "learnt from scratch"
# By the reason for which two parameters are taken for the same.
COLOUR_OF = {"name": GREEN, "alias": SKY, "mapping": PINK, "default": ORANGE, NOBODY: GREY}
HEADS = ("yours", "of the prior", "by", "")
# Inches.
LINE = 0.32
LETTER = 0.085
GAP = 0.3


def plot_alignment(prior: Prior | str | os.PathLike[str], space: SearchSpace | Study) -> Axes:
    """Show as a table which parameters of a search space a prior knows.

    Args:
        prior: A prior, its name or its path.
        space: A search space, or a study that has trials with the parameters.

    Raises:
        ValueError: If the two have no parameter in common, or there is no such prior.
    """
    if not isinstance(prior, Prior):
        prior = Prior.load(prior)
    if not isinstance(space, SearchSpace):
        space = history_of(space, 0).space
    rows = rows_of(prior.align(space))
    texts = [HEADS, *rows]
    widths = [GAP + LETTER * max(len(text[place]) for text in texts) for place in range(4)]
    starts = [sum(widths[:place]) for place in range(4)]
    panel = new_panel(width=sum(widths) + GAP, height=LINE * (len(texts) + 2))
    for line, text in enumerate(texts):
        for place, (start, words) in enumerate(zip(starts, text, strict=True)):
            is_by = place == 2 and line
            panel.text(
                start,
                line,
                plain(words),
                va="center",
                weight="bold" if is_by or not line else "normal",
                color=COLOUR_OF[words] if is_by else ink(),
            )
    panel.hlines(0.5, -GAP / 2, sum(widths), color=GREY, lw=0.8)
    panel.set(xlim=(-GAP / 2, sum(widths)), ylim=(len(texts) - 0.5, -0.5))
    panel.set_axis_off()
    linked = sum(NOBODY not in row[:2] for row in rows)
    panel.set_title(
        plain(f"Prior {prior.card.name!r}") + f" knows {linked} of {len(space.names)} parameters",
        loc="left",
    )
    return panel


def rows_of(alignment: Alignment) -> list[tuple[str, str, str, str]]:
    """Return a row for each parameter, those of the study first.

    Returns:
        Its name in the study, its name in the prior, "–" where it is not there, what says that
        they are the same, and a remark.
    """
    links = {link.source: link for link in alignment.links}
    parameters = [
        (name, links[name].target, links[name].how, links[name].note)
        if name in links
        else (name, NOBODY, NOBODY, LEARNT)
        for name in alignment.source.names
    ]
    others = [(of_study, name, by, note) for name, of_study, by, note in alignment.rows()]
    return parameters + [row for row in others if row[0] == NOBODY]
