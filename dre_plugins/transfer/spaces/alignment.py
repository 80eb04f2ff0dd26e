"""Configurations of one search space, expressed in another one.

A prior was trained on one space, and a past study searched another; neither is the space of the
present study. `align` matches the parameters, `Alignment.convert` converts canonical units by
value.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from dre_plugins.space.base import Array
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.spaces import aliases, prefixes
from dre_plugins.transfer.spaces.conversion import (
    Link,
    conversion,
    conversion_by_name,
    difference,
    layer_links,
    value_units,
)

# Unit of the value of a domain with a single value.
_CONSTANT = 0.5


@dataclass(frozen=True)
class Alignment:
    """How configurations of `source` are expressed in `target`; made by `align`.

    Its texts are for a study that learns from the past: the source is the space it searches.
    """

    source: SearchSpace  # the space that configurations come from, with `Ps` parameters
    target: SearchSpace  # the space that they are expressed in, with `Pt` parameters
    links: tuple[Link, ...]  # parameters that both have, constants included
    # parameters of the target that get one value everywhere
    imputed: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # parameters of the target without a value
    ignored: tuple[str, ...] = ()  # parameters of the source that the target lacks
    # further reasons why parameters of the target are imputed or missing
    remarks: Mapping[str, str] = field(default_factory=dict)

    def convert(self, units: Array) -> Array:
        """Return canonical units of the target, canonical units `[N, Ps]` -> `[N, Pt]`.

        Parameters that are inactive by the conditions of either space, and values that the target
        lacks, are NaN. Numbers beyond a range of the target extrapolate, see `Domain.to_units`.
        """
        if units.ndim != 2 or units.shape[1] != self.source.n_parameters:
            raise ValueError(
                f"units must have one column for each of {list(self.source.names)}, got an array "
                f"of shape {units.shape}; make them with the source's to_units."
            )
        given = dict(zip(self.source.names, units.T, strict=True))
        constant = np.full(len(units), _CONSTANT)
        converted = np.tile(self._fixed, (len(units), 1))
        for link in self.links:
            if link.target not in self.target.constants:
                column = self.target.names.index(link.target)
                names = (*link.extra_sources, link.source)
                converted[:, column] = link.change(*(given.get(name, constant) for name in names))
        converted[~self._rules.active(converted)] = np.nan
        return converted

    @cached_property
    def _fixed(self) -> Array:
        """Return imputed units `[Pt]`, NaN elsewhere."""
        fixed = np.full(self.target.n_parameters, np.nan)
        for name, value in self.imputed.items():
            fixed[self.target.names.index(name)] = self.target.domains[name].to_unit(value)
        return fixed

    @cached_property
    def _rules(self) -> SearchSpace:
        """Return the target without conditions whose parent has no value.

        Whether the children of such a parent are active depends on the source alone.
        """
        conditions = [c for c in self.target.conditions if c.parent not in self.missing]
        return SearchSpace(self.target.domains, conditions, self.target.optional)

    def report(self) -> str:
        """Return a table of the links, and of the parameters without one."""
        rows = [("in the past", "in this study", "by", "remark")]
        rows += [(link.target, link.source, link.how, link.note()) for link in self.links]
        more = {name: f"; {remark}" for name, remark in self.remarks.items()}
        for name, value in self.imputed.items():
            # Rounded, as decoding a unit adds digits.
            plain = float(f"{value:.6g}") if isinstance(value, float) else value
            rows.append((name, "–", "default", f"set to {plain!r}{more.get(name, '')}"))
        rows += [(name, "–", "–", f"left missing{more.get(name, '')}") for name in self.missing]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        if self.ignored:
            lines.append(f"ignored, only in this study: {', '.join(self.ignored)}")
        return "\n".join(lines)

    def summary(self) -> str:
        """Return in one line which parameters of the source the target has, and which not."""
        order = list(self.source.domains)
        targets: dict[str, list[str]] = {}
        for link in sorted(self.links, key=lambda link: order.index(link.source)):
            targets.setdefault(link.source, []).append(link.target)
        shared = [
            name if theirs == [name] else f"{name} (there {' and '.join(map(repr, theirs))})"
            for name, theirs in targets.items()
        ]
        unknown = [name for name in self.ignored if name in self.source.names]  # no constants
        return f"knows {', '.join(shared)}; not: {', '.join(unknown) or 'none'}"


def align(
    source: SearchSpace,
    target: SearchSpace,
    *,
    mapping: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Alignment:
    """Find the parameters that two spaces have in common, see `try_align`.

    A ValueError says that there are none, or that those have no value in common.
    """
    alignment = try_align(source, target, mapping=mapping, defaults=defaults)
    if alignment is not None:
        return alignment
    shared = _shared(mapping, source, target)
    pairs = matching_names(list(source.domains), list(target.domains), shared)
    for name, (other, _) in pairs.items():
        if name in source.names and other in target.names:
            raise ValueError(
                f"the spaces have no value in common: {name!r} is {source.domains[name]!r} in "
                f"this study, {target.domains[other]!r} in the past."
            )
    raise ValueError(
        f"the spaces have no parameter in common: {list(source.domains)} in this study, "
        f"{list(target.domains)} in the past; join those that are the same with mapping={{name in "
        "this study: name in the past}, which is Prior.load(…, mapping=…), or with_mapping(…) of "
        "PastTasks or of a prior that was trained."
    )


def try_align(
    source: SearchSpace,
    target: SearchSpace,
    *,
    mapping: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Alignment | None:
    """Find the parameters that two spaces have in common; None if no searched one is.

    They match by `mapping`, then by equal names, then by names that differ in case, separators or
    a prefix ("Max-Depth", "model__max_depth"), then by known aliases ("eta", "learning_rate"). A
    word whose meaning depends on the learner ("gamma") matches where the learners are the same,
    see `matching_names`.

    Args:
        mapping: name in the source to name in the target, where they do not match; an entry is
            left out if either space lacks its name.
        defaults: values for parameters that only the target has, by any of their known names; a
            number outside the range becomes the nearest value of the range.

    A ValueError says that `mapping` joins parameters without a common value.
    """
    mapping = _shared(mapping, source, target)
    pairs = matching_names(list(source.domains), list(target.domains), mapping)
    links = layer_links(
        {name: domain for name, domain in source.domains.items() if name not in mapping},
        {name: domain for name, domain in target.domains.items() if name not in mapping.values()},
    )
    of_layers = {
        name for link in links for name in (link.source, *link.extra_sources, link.target)
    }
    remarks: dict[str, str] = {}
    for name, (other, how) in pairs.items():
        if name in of_layers or other in of_layers:
            continue
        ours, theirs = source.domains[name], target.domains[other]
        meaning = prefixes.change_of(name, other)
        if how == "mapping" or meaning is not None:
            change = conversion(ours, theirs, meaning)
        else:
            change = conversion_by_name(prefixes.without_learner(name), ours, theirs)
        if change is not None:
            # In words only where they are asked for, which takes as long as the rest of a link.
            links.append(Link(name, other, how, change, partial(difference, ours, theirs)))
        elif how == "mapping":
            raise ValueError(
                f"mapping joins {name!r} to {other!r}, but no value of {ours!r} is one of "
                f"{theirs!r}; remove it from the mapping."
            )
        else:
            remarks[other] = f"no value in common with {name!r} of this study"
    if not any(link.source in source.names and link.target in target.names for link in links):
        return None
    order = list(target.domains)
    links.sort(key=lambda link: order.index(link.target))
    joined = {name for link in links for name in (link.source, *link.extra_sources)}
    unknown = [name for name in target.names if name not in {link.target for link in links}]
    values, about_defaults = (
        _imputed(target, unknown, defaults, refused=remarks) if defaults else ({}, {})
    )
    return Alignment(
        source,
        target,
        links=tuple(links),
        imputed=values,
        missing=tuple(name for name in unknown if name not in values),
        ignored=tuple(name for name in source.domains if name not in joined),
        remarks=remarks | about_defaults,
    )


def _shared(
    mapping: Mapping[str, str] | None, source: SearchSpace, target: SearchSpace
) -> dict[str, str]:
    """Return the part of a mapping whose names the spaces have."""
    return {
        name: other
        for name, other in (mapping or {}).items()
        if name in source.domains and other in target.domains
    }


def matching_names(
    sources: Sequence[str], targets: Sequence[str], mapping: Mapping[str, str] | None = None
) -> dict[str, tuple[str, str]]:
    """Match names by spelling, then by role, each where exactly one on either side fits.

    Ambiguous names (`aliases.is_ambiguous`) match if both sides belong to the same families of
    learners, or if one side is a part of the other, like the first parameters of a define-by-run
    study. If only one side identifies its family, they match if an unambiguous name does: then the
    other side is assumed to be of the same learner. The result has by name of the one side the
    name of the other side and how they match: "mapping", "name" or "alias".
    """
    pairs = {name: (other, "mapping") for name, other in (mapping or {}).items()}
    used = {target for target, _ in pairs.values()}

    def join(ours: Mapping[str, str], theirs: Mapping[str, str], how: str) -> None:
        for key, name in ours.items():
            if key in theirs and name not in pairs and theirs[key] not in used:
                pairs[name] = theirs[key], how
                used.add(theirs[key])

    def join_all(are_clear: bool, learners: Collection[str] | None) -> None:
        for form in prefixes.FORMS:
            ours, theirs = _unique(sources, form), _unique(targets, form)
            if are_clear:
                ours = {key: name for key, name in ours.items() if not aliases.is_ambiguous(name)}
            join(ours, theirs, "name")
        join(aliases.roles(sources, learners), aliases.roles(targets, learners), "alias")

    ours, theirs = aliases.families(sources), aliases.families(targets)
    is_part = {*sources} <= {*targets} or {*targets} <= {*sources}
    if ours == theirs or is_part:
        join_all(are_clear=False, learners=None)
    else:
        join_all(are_clear=True, learners=None)
        if pairs and not (ours and theirs):
            join_all(are_clear=False, learners=ours | theirs)
    return pairs


def _unique(names: Sequence[str], form: Callable[[str], str]) -> dict[str, str]:
    """Return each form that exactly one name has, and that name; the empty form is none."""
    often = Counter(form(name) for name in names)
    return {form(name): name for name in names if form(name) and often[form(name)] == 1}


def _imputed(
    target: SearchSpace,
    unknown: Sequence[str],
    defaults: Mapping[str, Any],
    refused: Collection[str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values given to unknown parameters of the target, and remarks.

    Parameters that are `refused` have other values in the source, which no default may hide.
    """
    values: dict[str, Any] = {}
    remarks: dict[str, str] = {}
    for key, (name, _) in matching_names(list(defaults), list(target.domains)).items():
        if name not in unknown or name in refused:
            continue
        default, domain = defaults[key], target.domains[name]
        unit = domain.snap(value_units([default], domain))[0]
        if np.isnan(unit):
            remarks[name] = f"the default {default!r} is none of its values"
            continue
        values[name] = domain.from_unit(float(unit))
        if not domain.contains(default):
            remarks[name] = f"nearest to the default {default!r}"
    return values, remarks
