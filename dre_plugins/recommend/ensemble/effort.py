"""How large the members of constraints and of single objectives are, where these are many.

The time of a fit is that of all members times the entries of their lists. A study with one
objective has 10 members and lists of up to 128 trials.
"""

from __future__ import annotations

from dataclasses import dataclass

# The effort of a suggestion: members times entries of their lists, of all ensembles. Up to the
# first limit (one objective with two constraints) nothing is cut. Beyond it, all ensembles are cut
# to the second limit, which takes .35 s of a processor.
MAX_WHOLE = 3900
MAX_ROWS = 3000
# Shorter lists leave the boundary of a constraint unclear, fewer members its doubt.
MIN_LENGTH = 64
MIN_MEMBERS = 3
# Members that rank by one objective each, of all objectives together: whole, and cut.
MAX_SINGLE = 20
MAX_SINGLE_CUT = 10


@dataclass(frozen=True, slots=True)
class Effort:
    """Say how large the members of a suggestion are.

    Args:
        n_single: Members that rank by a single objective, of each, at most.
        n_members: Members of each constraint.
        length: Entries of the list of each constraint.
    """

    n_single: int
    n_members: int
    length: int


def effort_for(
    n_objectives: int, n_constraints: int, *, n_ensemble: int, n_members: int, length: int
) -> Effort:
    """Return what is asked for, or less where there are many objectives or constraints.

    Args:
        n_objectives: Number of objectives.
        n_constraints: Number of constraints that are learnt.
        n_ensemble: Members of the ensemble.
        n_members: Members wanted of each constraint.
        length: Entries of the longest list of a constraint.
    """
    whole = Effort(max(2, MAX_SINGLE // n_objectives), n_members, length)
    n_all = n_of_objectives(n_objectives, n_ensemble, whole.n_single) + n_constraints * n_members
    if not n_constraints or n_all * length <= MAX_WHOLE:
        return whole
    n_single = max(2, MAX_SINGLE_CUT // n_objectives)
    n_others = n_of_objectives(n_objectives, n_ensemble, n_single)
    left = max(MAX_ROWS - n_others * length, MAX_ROWS // 4)
    members = left // (n_constraints * min(length, MIN_LENGTH))
    members = min(max(members, MIN_MEMBERS), n_members)
    longest = max(left // (n_constraints * members), MIN_LENGTH // 4)
    return Effort(n_single, members, min(longest, length))


def n_of_objectives(n_objectives: int, n_ensemble: int, n_single: int) -> int:
    """Return how many members rank by objectives: half by all as one, half by each alone."""
    if n_objectives < 2:
        return n_ensemble
    n_joint = n_ensemble // 2
    return n_joint + n_objectives * min(n_single, n_ensemble - n_joint)
