"""How the domain of a parameter differs between two spaces, in words."""

from __future__ import annotations

from dre_plugins.space import Categorical, Constant, Domain, Float, Integer, Normal
from dre_plugins.space.conditions import listed_values
from dre_plugins.transfer.spaces.conversion import Number, placed

_MOST_LISTED = 5


def difference(source: Domain, target: Domain) -> str:
    """Return what a person should know before values of `source` are used in `target`."""
    if source == target:
        return ""
    remarks = [
        f"fixed at {domain.value!r} in the {where}"
        for where, domain in (("source", source), ("target", target))
        if isinstance(domain, Constant)
    ]
    if remarks:
        return ", ".join(remarks)
    if _kind(source) != _kind(target):
        remarks = [f"{_kind(target)} in the target, {_kind(source)} in the source"]
    if isinstance(source, Number):
        remarks += _between_numbers(source, target) if isinstance(target, Number) else []
    else:
        remarks += _only("source", source, target)
        remarks += [] if isinstance(target, Number) else _only("target", target, source)
    return "; ".join(remarks)


def _between_numbers(source: Number, target: Number) -> list[str]:
    remarks = []
    if _scale(source) != _scale(target):
        remarks.append(f"{_scale(target)} scale in the target, {_scale(source)} in the source")
    if _kind(source) == _kind(target) and source.step != target.step:
        remarks.append(f"step {target.step} in the target, {source.step} in the source")
    (low, high), (least, most) = bounds(source), bounds(target)
    if (low, high) != (least, most):
        if low <= least and high >= most:
            how = "wider in the source"
        elif low >= least and high <= most:
            how = "wider in the target"
        else:
            how = "another range in the source"
        remarks.append(f"{how}: {low:g}…{high:g} against {least:g}…{most:g}")
    return remarks


def _only(where: str, here: Domain, there: Domain) -> list[str]:
    """Name the values that only one of two domains has, at most a few of them."""
    values = listed_values(here)
    missing = [v for v, unit in zip(values, placed(values, there), strict=True) if unit != unit]
    if not missing:
        return []
    more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
    return [f"only in the {where}: {missing[:_MOST_LISTED]!r}{more}"]


def bounds(domain: Number) -> tuple[float, float]:
    """Return the lowest and the highest value that the domain can draw."""
    return float(domain.from_unit(0.0)), float(domain.from_unit(1.0))


def _scale(domain: Number) -> str:
    return "normal" if isinstance(domain, Normal) else domain.scale


def _kind(domain: Domain) -> str:
    if isinstance(domain, Integer):
        return "int"
    if isinstance(domain, (Float, Normal)):
        return "float"
    return "categorical" if isinstance(domain, Categorical) else "ordinal"
