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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from optuna.trial import FrozenTrial

from dre_plugins.recommend.trials import TrialState
from dre_plugins.space.base import Domain, Mask, Positions, Units
from dre_plugins.space.candidates import sobol_point, start_up_unit
from dre_plugins.space.seen import distinct_rows, groups

# A trial may fail by accident before it asks for all parameters. If it counted as whole, no trial
# with the same values would be suggested again; so a second failure must confirm it.
MIN_FAILURES = 2
# Values are first compared roughly, by the bin of their unit, which is one bit of an integer.
_N_BINS = 63


@dataclass(frozen=True, slots=True)
class Absences:
    """Hold which parameters are known to be inactive because trials did not ask for them.

    Trials of an earlier script count as well, except for parameters that the change affects.
    """

    is_whole: Mask  # trials that stand for all that agree on the parameters they asked for `[N]`
    shows_absence: Mask  # trials whose missing parameters were inactive `[N]`
    since: Positions  # position of the first trial that shows it, for each parameter `[P]`


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
    contradictions: list[tuple[Positions, Positions]] = []
    for a, b in _comparable(units, sets, set_of):
        common = sets[a] & sets[b]
        is_part = not (sets[a] & ~sets[b]).any()
        for first, second in _agreeing(units, np.flatnonzero(set_of == a), set_of == b, common):
            if is_part:  # it may have stopped before it asked for the other parameters
                is_short[first[~is_complete[first]]] = True
                first = first[is_complete[first]]
            if len(first):
                contradictions += [(first, second), (second, first)]
                has_changed |= sets[a] ^ sets[b]
    first_present = _start_of_present_script(contradictions)
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


def _comparable(units: Units, sets: Mask, set_of: Positions) -> Iterator[tuple[int, int]]:
    """Yield pairs of sets of parameters whose trials may agree on all that both asked for.

    Nearly all pairs differ in a parameter on which the objective branches, and need no closer
    look. The first of a pair is no larger than the second. `sets` are the different ones `[K, P]`,
    and `set_of` says which of them each trial asked for `[N]`.
    """
    if len(sets) < 2:
        return
    bins = np.clip(np.nan_to_num(units) * _N_BINS, 0, _N_BINS - 1).astype(np.uint64)
    bits = np.left_shift(np.uint64(1), bins)
    values = np.array([np.bitwise_or.reduce(bits[set_of == k], axis=0) for k in range(len(sets))])
    sizes = sets.sum(axis=1)
    for a in np.argsort(sizes, kind="stable").tolist():
        common = sets[a] & sets
        parted = (common & ((values[a] & values) == 0)).any(axis=1)
        later = (sizes > sizes[a]) | ((sizes == sizes[a]) & (np.arange(len(sets)) > a))
        for b in np.flatnonzero(~parted & later).tolist():
            yield a, b


def _agreeing(
    units: Units, rows: Positions, others: Mask, common: Mask
) -> Iterator[tuple[Positions, Positions]]:
    """Yield trials of two sets that have the same values of common parameters `[P]`, ascending."""
    other_rows = np.flatnonzero(others)
    keys = groups(units[np.concatenate([other_rows, rows])][:, common])
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for row, key in zip(other_rows.tolist(), keys, strict=False):
        places[key].append(row)
    agreeing: defaultdict[bytes, list[int]] = defaultdict(list)
    for row, key in zip(rows.tolist(), keys[len(other_rows) :], strict=True):
        if key in places:
            agreeing[key].append(row)
    for key, group in agreeing.items():
        yield np.array(group, dtype=np.intp), np.array(places[key], dtype=np.intp)


def _start_of_present_script(contradictions: Sequence[tuple[Positions, Positions]]) -> int:
    """Return the position before which trials may be of another script.

    `contradictions` has pairs of positions of trials and of the trials that contradict them, both
    ascending. The script has changed between the two trials of each contradiction. So the last
    change lies behind the last trial that a later one contradicts, and not behind that later one.
    """
    last = max(
        (int(old[old < new[-1]][-1]) for old, new in contradictions if old[0] < new[-1]),
        default=-1,
    )
    return min(
        (int(new[new > last][0]) for old, new in contradictions if old[0] <= last < new[-1]),
        default=0,
    )


def independent_unit(trial: FrozenTrial, domain: Domain, seed: int, *, is_known: bool) -> float:
    """Return a unit of the next parameter of a trial, which is sampled independently.

    That of a new parameter is one coordinate of the trial's start-up point. If the model knows the
    parameter, but few trials have asked for this range, the unit is random: that may happen in
    every second turn, and every second point is in the same half.
    """
    position = len(trial.params)
    if is_known:
        return float(np.random.default_rng([seed, trial.number, position]).random())
    unit = float(sobol_point(position + 1, trial.number, seed)[position])
    return start_up_unit(domain, unit, trial.number)
