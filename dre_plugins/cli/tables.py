"""Search spaces and cards as tables to print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from dre_plugins.cli.console import whole
from dre_plugins.space.conditions import AnyCondition, Condition
from dre_plugins.transfer.spaces.conversion import format_domain, format_values

if TYPE_CHECKING:
    from dre_plugins.space.search_space import SearchSpace
    from dre_plugins.transfer.prior_file import Card


def card_table(card: Card) -> Table:
    """Return a card, one row an entry; empty entries are left out."""
    entries = {k: v for k, v in asdict(card).items() if k != "name" and v not in ("", {})}
    texts = {k: _entries(v) if isinstance(v, Mapping) else str(v) for k, v in entries.items()}
    texts["tasks"] = f"{len(card.tasks)}: {format_values(card.tasks)}"
    return entry_table(f"prior {card.name}", texts)


def entry_table(title: str, entries: Mapping[str, str]) -> Table:
    """Return entries by name, one row an entry."""
    table = Table("", whole(""), show_header=False, title=title, title_justify="left")
    for name, text in entries.items():
        table.add_row(name, text)
    return table


def space_table(space: SearchSpace) -> Table:
    """Return a search space, one row a parameter."""
    columns = (whole("parameter"), "kind", whole("values"), whole("active"))
    table = Table(*columns, title="search space", title_justify="left")
    for name, domain in space.domains.items():
        conditions = [
            _condition(condition) for condition in space.conditions if condition.child == name
        ]
        conditions += ["not always known"] if name in space.optional else []
        kind = type(domain).__name__.lower()
        table.add_row(name, kind, format_domain(domain), " and ".join(conditions) or "always")
    return table


def names_table(space: SearchSpace) -> Table:
    """Return what else the parameters of a search space may be called, one row a parameter."""
    from dre_plugins.transfer.spaces.aliases import other_names

    table = Table(whole("parameter"), "also", title="other names", title_justify="left")
    names = other_names(space.domains)
    for name, others in names.items():
        table.add_row(name, ", ".join(others))
    is_inverse = "alpha" in names.get("C", ())
    table.caption = (
        "Prefixes (clf__, model., svm_) do not matter; log10_, log2_ and ln_ before a name stand "
        f"for its logarithm, inv_ for its inverse{', as alpha does for C' if is_inverse else ''}."
    )
    return table


def _condition(condition: AnyCondition) -> str:
    if isinstance(condition, Condition):
        return f"{condition.parent} is {format_values(condition.values, ' or ')}"
    parts = [] if condition.low is None else [f"{condition.low!r} ≤"]
    parts.append(condition.parent)
    parts += [] if condition.high is None else [f"≤ {condition.high!r}"]
    return " ".join(parts)


def _entries(values: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{key}: {value:.4g}" if isinstance(value, float) else f"{key}: {value}"
        for key, value in values.items()
    )
