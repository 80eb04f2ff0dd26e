"""How large the members of constraints and of single objectives are, where these are many.

The time of a fit is that of all members times the entries of their lists. A study with one
objective has 10 members and lists of up to 128 trials.
"""

from __future__ import annotations

# Members times entries of their lists, of all that is fitted for a suggestion: three times those
# of a study with one objective.
MAX_ROWS = 3900
# Shorter lists leave the boundary of a constraint unclear, fewer members its doubt.
MIN_LENGTH = 64
MIN_MEMBERS = 3
# Members that rank by one objective each, of all objectives together.
MAX_ALONE = 20


def of_constraints(
    n_constraints: int, n_members: int, length: int, n_others: int
) -> tuple[int, int]:
    """Return members and list length of each constraint: what is asked for, or less for many.

    Args:
        n_constraints: Number of constraints, at least 1.
        n_members: Members wanted of each.
        length: Entries of the longest list.
        n_others: Members of the objectives.
    """
    if (n_others + n_constraints * n_members) * length <= MAX_ROWS:
        return n_members, length
    left = max(MAX_ROWS - n_others * length, MAX_ROWS // 4)
    members = left // (n_constraints * min(length, MIN_LENGTH))
    members = min(max(members, MIN_MEMBERS), n_members)
    return members, min(max(left // (n_constraints * members), MIN_LENGTH // 2), length)


def of_objectives(n_objectives: int, n_members: int) -> int:
    """Return how many members rank by each objective alone, at most `n_members`."""
    return min(n_members, max(2, MAX_ALONE // n_objectives))
