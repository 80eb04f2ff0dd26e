"""Conclusions from the parameters that trials of a define-by-run study did not ask for.

An objective that asks for its parameters one by one walks down a decision tree: where two trials
branch, both asked for the same parameter and got different values. So an ended trial stands for
every configuration that has the same values of the parameters it asked for, whatever its other
values. There are two exceptions. A trial that failed, was pruned or is running may have stopped
before it asked for all parameters; and a study may be resumed with another script. Both show when
two trials agree on all parameters that they share, but did not ask for the same ones.

Notation: `N` trials in order of number, `P` parameters, `K` different sets of parameters.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre_plugins.recommend.trials import TrialState
from dre_plugins.space.base import Domain, Mask, Positions, Units
from dre_plugins.space.candidates import sobol_point, start_up_unit
from dre_plugins.space.conditions import infer_conditions
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import distinct_rows, value_numbers

# A trial may fail by accident before it asks for all parameters. If it counted as whole, no trial
# with the same values would be suggested again; so a second failure must confirm it.
MIN_FAILURES = 2


@dataclass(frozen=True, slots=True)
class Absences:
    """Hold which parameters are known to be inactive because trials did not ask for them.

    Trials of an earlier script count as well, except for parameters that the change affects.
    """

    is_whole: Mask  # trials that stand for all that agree on the parameters they asked for `[N]`
    shows_absence: Mask  # trials whose missing parameters were inactive `[N]`
    since: Positions  # position of the first trial that shows it, for each parameter `[P]`


def learnt_space(
    domains: Mapping[str, Domain], asked: Sequence[Mapping[str, Any]], states: Sequence[TrialState]
) -> tuple[SearchSpace, Mask]:
    """Return the search space, with conditions learnt from the parameters that trials asked for.

    Returns:
        The space, and which trials asked for all parameters that belong to their values `[N]`; one
        that failed or is still running may lack some.
    """
    plain = SearchSpace(domains)
    if all(values.keys() == asked[0].keys() for values in asked):
        units = np.zeros((len(asked), plain.n_parameters))  # values do not matter, and take time
    else:
        units = plain.to_units(asked)
    evidence = absences_of(units, states)
    rows = np.flatnonzero(evidence.shows_absence).tolist()
    since = dict(zip(plain.names, np.searchsorted(rows, evidence.since).tolist(), strict=True))
    conditions, optional = infer_conditions(domains, [asked[row] for row in rows], since)
    return SearchSpace(domains, conditions, optional), evidence.is_whole


def absences_of(units: Units, states: Sequence[TrialState]) -> Absences:
    """Return the conclusions from the parameters that trials did not ask for.

    `units` has the coordinates of the parameters that each trial asked for `[N, P]`, else NaN.
    """
    n_trials, n_parameters = units.shape
    sets, set_of = distinct_rows(~np.isnan(units))
    is_complete, is_pruned, has_failed = (
        np.array([trial_state is state for trial_state in states], dtype=np.bool_)
        for state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED)
    )
    is_short = np.zeros(n_trials, dtype=np.bool_)
    has_changed = np.zeros(n_parameters, dtype=np.bool_)
    contradicting: set[int] = set()
    last_contradicted = -1
    for a, b, first, second in _agreeing(units, sets, set_of):
        if not (sets[a] & ~sets[b]).any():  # it may have stopped before it asked for the others
            is_short[first[~is_complete[first]]] = True
            first = first[is_complete[first]]
        if len(first):
            contradicting |= {*first.tolist(), *second.tolist()}
            last_contradicted = max(last_contradicted, min(first[-1], second[-1]))
            has_changed |= sets[a] ^ sets[b]
    # The script has changed between two trials that contradict each other: the last time behind
    # the last trial that a later one contradicts, and not behind that later one.
    first_present = min((row for row in contradicting if row > last_contradicted), default=0)
    confirmed = np.bincount(set_of[has_failed & ~is_short], minlength=len(sets)) >= MIN_FAILURES
    is_exceeded = [((sets >= part).all(axis=1) & (sets > part).any(axis=1)).any() for part in sets]
    is_largest = ~np.array(is_exceeded, dtype=np.bool_)
    counts = is_complete | is_pruned | is_largest[set_of] | (has_failed & confirmed[set_of])
    shows_absence = counts & ~is_short
    is_present = np.arange(n_trials) >= first_present
    return Absences(
        shows_absence & is_present,
        shows_absence,
        np.where(has_changed, first_present, 0).astype(np.intp),
    )


def _agreeing(
    units: Units, sets: Mask, set_of: Positions
) -> Iterator[tuple[int, int, Positions, Positions]]:
    """Yield two sets of parameters, and trials of each with the same values of those in both.

    The first set is no larger than the second, and trials are ascending. `sets` are the different
    ones `[K, P]`, and `set_of` says which of them each trial asked for `[N]`.
    """
    values = value_numbers(units)
    rows_of = [np.flatnonzero(set_of == k) for k in range(len(sets))]
    # Which values the trials of a set have, roughly: a bit of an integer for each.
    bits = np.left_shift(np.uint64(1), values.astype(np.uint64) % np.uint64(64))
    taken = np.array([np.bitwise_or.reduce(bits[rows], axis=0) for rows in rows_of])
    order = np.argsort(sets.sum(axis=1), kind="stable")
    for place, a in enumerate(order.tolist(), 1):
        larger = order[place:]
        # Nearly all pairs of sets differ in a parameter on which the objective branches.
        is_parted = sets[a] & sets[larger] & ((taken[a] & taken[larger]) == 0)
        for b in larger[~is_parted.any(axis=1)].tolist():
            common = np.flatnonzero(sets[a] & sets[b])
            same: defaultdict[bytes, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
            for side, rows in enumerate((rows_of[a], rows_of[b])):
                for row, key in zip(rows.tolist(), values[np.ix_(rows, common)], strict=True):
                    same[key.tobytes()][side].append(row)
            for first, second in same.values():
                if first and second:
                    yield a, b, np.array(first, dtype=np.intp), np.array(second, dtype=np.intp)


def independent_unit(
    number: int, position: int, domain: Domain, seed: int, *, is_known: bool
) -> float:
    """Return a unit of the parameter at a position of a trial, which is sampled independently.

    That of a new parameter is one coordinate of the trial's start-up point. If the model knows the
    parameter, but few trials have asked for this range, the unit is random: that may happen in
    every second turn, and every second point is in the same half.
    """
    if is_known:
        return float(np.random.default_rng([seed, number, position]).random())
    unit = float(sobol_point(position + 1, number, seed)[position])
    return start_up_unit(domain, unit, number)
