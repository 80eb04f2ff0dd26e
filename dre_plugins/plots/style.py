"""Colours and panels that all figures share.

Text, frames and backgrounds have the user's style, so figures look right in light and dark ones.
"""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

# Of the palette of Okabe and Ito, which colour-blind readers can distinguish.
BLUE, RED, SKY = "#0072B2", "#D55E00", "#56B4E9"
# Can be seen on white and on black.
GREY = "#888888"
# Shades of a plane: better values are brighter, because they draw attention.
SHADES = "viridis"


def new_panels(n: int = 1, *, width: float = 6.4, height: float = 4.4) -> list[Axes]:
    """Return `n` axes of a new figure, side by side: the width of each, the height in inches."""
    _, panels = plt.subplots(
        1, n, figsize=(width * n, height), layout="constrained", squeeze=False
    )
    for panel in panels[0]:
        panel.spines[["top", "right"]].set_visible(False)
    return [*panels[0]]


def legend_below(panel: Axes) -> None:
    """Put the legend below the figure, where it hides nothing."""
    figure = panel.figure
    assert isinstance(figure, Figure)  # as `new_panels` makes it
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)


def plain(text: str) -> str:
    """Return a name or a value as Matplotlib draws it letter by letter.

    Two dollars would begin and end a formula; what has no letter becomes a question mark.
    """
    drawn = "".join(letter if letter.isprintable() else "?" for letter in text)
    return drawn.replace("$", r"\$")


def blue() -> str:
    """Return the main colour: a blue that can be seen on the user's background."""
    is_dark = sum(to_rgb(plt.rcParams["axes.facecolor"])) < 1.5
    return SKY if is_dark else BLUE


def ink() -> str:
    """Return the colour of text in the user's style."""
    return str(plt.rcParams["text.color"])
