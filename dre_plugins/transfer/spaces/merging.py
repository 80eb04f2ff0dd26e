"""One search space that holds several: for a prior whose tasks do not share one space.

Aliases of a parameter in different spaces get one name, so that the prior has it once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from dre_plugins.checks import is_integer
from dre_plugins.space.base import Domain, UnsupportedDomainError, distinct_values
from dre_plugins.space.conditions import AnyCondition, Condition, RangeCondition
from dre_plugins.space.discrete import Categorical, Constant, Ordinal
from dre_plugins.space.numeric import Float, Integer, Normal, Number
from dre_plugins.space.ranges import is_finite
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.spaces.aliases import SHARES_OR_COUNTS
from dre_plugins.transfer.spaces.alignment import matching_names
from dre_plugins.transfer.spaces.conversion import are_share_and_count, landmarks
from dre_plugins.transfer.spaces.inference import infer_domain
from dre_plugins.transfer.spaces.prefixes import change_of, without_learner

# Numbers are listed as categories, and a parent's values in a condition, up to this many.
_MOST_LISTED = 32


def merged_space(spaces: Sequence[SearchSpace]) -> SearchSpace:
    """Return the smallest space that holds the parameters and the values of all.

    Parameters come in order of first appearance and match by their exact names. One that some
    space lacks, or that spaces need under conditions that cannot be united, is optional. A
    ValueError says that a parameter is a number in one space and a word in another.
    """
    if not spaces:
        raise ValueError("there is no search space to merge; give at least one.")
    if all(space == spaces[0] for space in spaces):
        return spaces[0]
    names = dict.fromkeys(name for space in spaces for name in space.domains)
    domains = {
        name: merged_domain(name, [s.domains[name] for s in spaces if name in s.domains])
        for name in names
    }
    conditions, optional = _merged_conditions(spaces, domains)
    for space in spaces:
        optional |= space.optional | {name for name in names if name not in space.domains}
    constants = {name for name, domain in domains.items() if isinstance(domain, Constant)}
    return SearchSpace(domains, conditions, optional - constants)


def union_of(spaces: Sequence[SearchSpace], names: Sequence[str]) -> SearchSpace:
    """Return one space for several tasks, in which aliases of a parameter have one name.

    A ValueError names the tasks, of the given names, without which there is one.
    """
    renamed = unify_names(spaces)
    try:
        return in_canonical_order(merged_space(renamed))
    except ValueError as error:
        kept = mergeable(renamed)
        others = [name for place, name in enumerate(names) if place not in kept]
        raise ValueError(f"{error} There is a common space without the tasks {others}.") from error


def mergeable(spaces: Sequence[SearchSpace]) -> list[int]:
    """Return the positions of spaces that have a union, without those that earlier ones exclude.

    A space in which a parameter is a word is left out if it is a number in an earlier one.
    """
    if _have_union(spaces):
        return [*range(len(spaces))]
    kept: list[int] = []
    for position, space in enumerate(spaces):
        if _have_union([*(spaces[earlier] for earlier in kept), space]):
            kept.append(position)
    return kept


def _have_union(spaces: Sequence[SearchSpace]) -> bool:
    try:
        merged_space(unify_names(spaces))
    except ValueError:
        return False
    return True


def in_canonical_order(space: SearchSpace) -> SearchSpace:
    """Return the space with parameters by name and unordered choices by type and text.

    A prior of past studies must not depend on the order in which they list parameters or choices.
    """
    domains = dict(sorted(space.domains.items()))
    for name, domain in domains.items():
        if isinstance(domain, Categorical):
            choices = sorted(domain.choices, key=lambda value: (type(value).__name__, repr(value)))
            domains[name] = Categorical(tuple(choices))
    return SearchSpace(domains, sorted(space.conditions, key=repr), space.optional)


# ---- domains


def merged_domain(name: str, domains: Sequence[Domain]) -> Domain:
    """Return the smallest domain that holds all values of several."""
    if all(domain == domains[0] for domain in domains):
        return domains[0]
    if all(isinstance(domain, Constant) for domain in domains):
        return infer_domain(name, [value for domain in domains for value in domain.all_values()])
    if not any(isinstance(domain, Number) for domain in domains):
        return _union(domains)
    if all(isinstance(d, Number) or all(map(is_finite, d.all_values())) for d in domains):
        may_differ = without_learner(name) in SHARES_OR_COUNTS
        pairs = combinations(set(domains), 2) if may_differ else ()
        return _span(domains, any(are_share_and_count(*pair) for pair in pairs))
    are_short = all(1 <= (domain.n_values or 0) <= _MOST_LISTED for domain in domains)
    values = distinct_values(v for d in domains for v in d.all_values()) if are_short else ()
    if not 0 < len(values) <= _MOST_LISTED:
        raise UnsupportedDomainError(
            f"parameter {name!r} is a number in one space and a word in another: "
            f"{list(domains)!r}; rename it in one of them, or leave that space out."
        )
    return Categorical(values)


def _union(domains: Sequence[Domain]) -> Domain:
    """Return all listed values, in order if every domain has one and they agree."""
    values = distinct_values(value for domain in domains for value in domain.all_values())
    if not all(isinstance(domain, (Ordinal, Constant)) for domain in domains):
        return Categorical(values)
    if all(map(is_finite, values)):
        values = tuple(sorted(values))
        spacings = {domain.spacing for domain in domains if isinstance(domain, Ordinal)}
        spacing = spacings.pop() if len(spacings) == 1 else "equal"
        if any(low == high for low, high in pairwise(values)):  # 1 and 1.0
            return Categorical(values)
        return Ordinal(values, "linear" if spacing == "log" and values[0] <= 0 else spacing)
    listed = Categorical(values)
    orders = [listed.index(listed.to_units(d.all_values())).tolist() for d in domains]
    # Words of two domains have an order if each pair of neighbours has one in either.
    stated = {pair for order in orders for pair in pairwise(order)}
    is_known = stated.issuperset(pairwise(range(len(values))))
    are_alike = all(order == sorted(order) for order in orders)
    return Ordinal(values) if is_known and are_alike else listed


def _span(domains: Sequence[Domain], are_shares_and_counts: bool) -> Domain:
    """Return the widest range of numbers, with the scale and the step that suit all."""
    marks = [value for domain in domains for value in landmarks(domain)]
    low, high = min(marks), max(marks)
    # All shares would be next to one point of a linear range of counts.
    is_log = are_shares_and_counts and low > 0
    scale = "log" if is_log else _scale(domains, low, high)
    steps = {domain.step for domain in domains if isinstance(domain, Number)}
    step = steps.pop() if len(steps) == 1 else None
    merged: Domain
    if all(map(is_integer, marks)) and not any(isinstance(d, (Float, Normal)) for d in domains):
        merged = Integer(low, high, scale, 1 if step is None else int(step))
        return merged if all(map(merged.contains, marks)) else Integer(low, high, scale)
    merged = Float(low, high, scale, step)
    return merged if all(map(merged.contains, marks)) else Float(low, high, scale)


def _scale(domains: Sequence[Domain], low: float, high: float) -> str:
    """Return "log" if any domain is on that scale and all numbers allow it."""
    scales = {domain.scale for domain in domains if isinstance(domain, Number)}
    scales |= {domain.spacing for domain in domains if isinstance(domain, Ordinal)} & {"log"}
    if "log" in scales and low > 0:
        return "log"
    return "reverse-log" if scales == {"reverse-log"} and 0 <= low <= high < 1 else "linear"


# ---- conditions


def _merged_conditions(
    spaces: Sequence[SearchSpace], domains: Mapping[str, Domain]
) -> tuple[list[AnyCondition], set[str]]:
    """Return conditions that admit what every space admits, and children that are left without."""
    merged: list[AnyCondition] = []
    without: set[str] = set()
    for child, parent in dict.fromkeys((c.child, c.parent) for s in spaces for c in s.conditions):
        having = [s for s in spaces if child in s.domains and parent in s.domains]
        stated = [
            [c for c in space.conditions if (c.child, c.parent) == (child, parent)]
            for space in having
        ]
        united = stated[0]
        if any(conditions != united for conditions in stated):
            united = _united(stated, [space.domains[parent] for space in having])
        if united and all(is_valid(condition, domains[parent]) for condition in united):
            merged += united
        else:
            without.add(child)
    return merged, without


def _united(
    stated: Sequence[Sequence[AnyCondition]], parents: Sequence[Domain]
) -> list[AnyCondition]:
    """Return one condition of a child and its parent for several spaces, or none.

    A space that states none says that the child is active for every value that the parent has
    there: in a study of trees only, the depth has no condition.
    """
    pattern = next(condition for conditions in stated for condition in conditions)
    completed = [
        conditions or _always(pattern, parent)
        for conditions, parent in zip(stated, parents, strict=True)
    ]
    single = [conditions[0] for conditions in completed if len(conditions) == 1]
    if len(single) < len(completed):
        return []
    listed = [c for c in single if isinstance(c, Condition)]
    if len(listed) == len(single):
        values = distinct_values(value for condition in listed for value in condition.values)
        return [Condition(pattern.child, pattern.parent, values)]
    ranges = [c for c in single if isinstance(c, RangeCondition)]
    lows, highs = [c.low for c in ranges], [c.high for c in ranges]
    low = None if None in lows else min(lows)
    high = None if None in highs else max(highs)
    if listed or (low is None and high is None):
        return []
    return [RangeCondition(pattern.child, pattern.parent, low, high)]


def _always(pattern: AnyCondition, parent: Domain) -> list[AnyCondition]:
    """Return a condition of the pattern's kind that every value of `parent` fulfils, or none."""
    child, name = pattern.child, pattern.parent
    if isinstance(pattern, Condition):
        is_short = parent.n_values is not None and parent.n_values <= _MOST_LISTED
        return [Condition(child, name, tuple(parent.all_values()))] if is_short else []
    marks = landmarks(parent)
    if not all(map(is_finite, marks)):
        return []
    return [RangeCondition(child, name, min(marks), max(marks))]


def is_valid(condition: AnyCondition, parent: Domain) -> bool:
    """Return whether a condition can be stated on the merged domain of its parent."""
    if isinstance(condition, Condition):
        return parent.is_binned and all(map(parent.contains, condition.values))
    try:
        parent.unit_interval(condition.low, condition.high)
    except ValueError:
        return False
    return True


# ---- names


def unify_names(spaces: Sequence[SearchSpace]) -> list[SearchSpace]:
    """Return the spaces with one name for each parameter: of several, the first one by alphabet.

    Parameters match as in `alignment.try_align`, unless their numbers mean something else
    (the strength of a penalty, and its inverse): then both keep their names.
    """
    merged: dict[str, None] = {}
    renamed: dict[tuple[str, ...], dict[str, str]] = {}
    for names in sorted({tuple(space.domains) for space in spaces}, key=sorted):
        renamed[names] = {
            name: other
            for name, (other, _) in matching_names(names, list(merged)).items()
            if other not in names and change_of(name, other) is None
        }
        merged |= dict.fromkeys(renamed[names].get(name, name) for name in names)
    return [_renamed(space, renamed[tuple(space.domains)]) for space in spaces]


def _renamed(space: SearchSpace, names: Mapping[str, str]) -> SearchSpace:
    if not names:
        return space
    domains = {names.get(name, name): domain for name, domain in space.domains.items()}
    conditions = [
        replace(c, child=names.get(c.child, c.child), parent=names.get(c.parent, c.parent))
        for c in space.conditions
    ]
    return SearchSpace(domains, conditions, {names.get(name, name) for name in space.optional})
