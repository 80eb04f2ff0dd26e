"""Which configurations may be tried, by a rule that the user knows beforehand.

A rule is a predicate on configurations, such as `lambda c: c["min_split"] <= c["max_leaf"]`. All
candidates satisfy it. If few configurations do, some are found by rejection of spread points, and
further ones by moves from these along differences of valid configurations, which stay in sets as
thin as "three shares add up to 1".

Notation: see docs/architecture.md. Without a predicate everything is valid, and candidates are
what `candidates` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dre_plugins.space.base import Array, Mask
from dre_plugins.space.candidates import DONATED, mutate, sobol, with_fixed
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen, distinct

Valid: TypeAlias = Callable[[dict[str, Any]], bool]

# Finite spaces of up to this many configurations are enumerated to find the last ones.
MAX_ENUMERATED = 100_000
# When a study begins: number of valid configurations to find, and largest number of spread points
# to try, which takes .5 s. With given values, a sixteenth of these are tried.
N_EXAMPLES = 64
MAX_TRIED = 2**16
MAX_TRIED_FIXED = 2**12
# If the rule holds for a smaller share, there is a warning, as few valid configurations are known.
MIN_SHARE = 1e-3
# A child is a valid configuration moved by one of these shares of the difference of two others. If
# the result is not valid, shorter moves are tried: these shares of the first one. No other shares
# were tried.
_SCALES = (0.5, 0.3, 0.1, 0.03)
_STAGES = (1.0, 0.5, 0.2, 0.05)


class RuleError(ValueError):
    """A rule that raises, or that no configuration satisfies."""


class Rule:
    """Draw candidates for which a predicate holds.

    Args:
        space: The search space.
        valid: Predicate of a dictionary of the active parameters and the constants; None: all
            configurations are valid. It is called several thousand times a suggestion, and must
            always answer the same.
        seed: Seed of the study.
        is_learnt: Whether the space was learnt from a define-by-run study. Then the rule counts as
            met if it reads a parameter that is absent; otherwise that is an error.
    """

    def __init__(
        self, space: SearchSpace, valid: Valid | None, *, seed: int = 0, is_learnt: bool = False
    ) -> None:
        if not (valid is None or callable(valid)):
            raise RuleError(
                f"valid must be a function of a configuration, or None, got {valid!r}."
            )
        self.space = space
        self._valid = valid
        self._seed = seed
        self._is_learnt = is_learnt
        self._examples: dict[bytes, Array] = {}
        self._tables: dict[int, Array | None] = {}
        ordered = [space.domains[name].is_ordered for name in space.names]
        self._is_unordered = ~np.array(ordered, dtype=np.bool_)

    # ---- what is valid

    def allows(self, configuration: Mapping[str, Any]) -> bool:
        """Say whether a configuration may be tried; a RuleError says that the predicate fails."""
        if self._valid is None:
            return True
        try:
            answer = self._valid(_Configuration(configuration))
        except Exception as error:
            if self._is_learnt and isinstance(error, _AbsentError):
                return True
            raise _failure(error, configuration) from error
        # A generator or a coroutine, as where all(…) or await was forgotten, would always hold.
        if answer is None or not hasattr(answer, "__bool__") or np.ndim(answer):
            raise RuleError(f"valid returned {answer!r}; it must return True or False.")
        return bool(answer)

    def requiring(self, names: Collection[str]) -> Rule:
        """Return the rule that also requires that certain parameters are active."""

        def valid(configuration: dict[str, Any]) -> bool:
            has_all = all(name in configuration for name in names)
            return has_all and (self._valid is None or self._valid(configuration))

        return Rule(self.space, valid, seed=self._seed, is_learnt=self._is_learnt)

    def absent_from(self, configuration: Mapping[str, Any]) -> str | None:
        """Return a parameter that the predicate reads and a configuration lacks, if there is one.

        It is asked after `allows`, which names a configuration for which the predicate raises.
        """
        if self._valid is not None:
            try:
                self._valid(_Configuration(configuration))
            except _AbsentError as error:
                return str(error.args[0])
        return None

    def holds(self, units: Array) -> Mask:
        """Say which coordinates `[C, P]` may be tried, `[C]`; errors are those of `allows`."""
        if self._valid is None:
            return np.ones(len(units), dtype=np.bool_)
        return np.array([*map(self.allows, self.space.to_configurations(units))], dtype=np.bool_)

    def kept(self, units: Array) -> Array:
        """Return those of coordinates `[C, P]` that may be tried and lack no active parameter.

        Where a value of a parent was put in afterwards, a row may lack what became active by it.
        """
        lacking = np.isnan(units)
        if lacking.any():
            units = units[~(lacking & self.space.active(units)).any(axis=1)]
        return units if self._valid is None else units[self.holds(units)]

    def assignments(self, limit: int) -> Array | None:
        """Return all valid canonical units `[C, P]`, None if the space has more than `limit`."""
        if limit not in self._tables:
            table = self.space.assignments(limit)
            self._tables[limit] = None if table is None else self.kept(table)
        return self._tables[limit]

    @property
    def n_configurations(self) -> int | None:
        """Return the number of valid configurations, None if they are too many to count."""
        if self._valid is None:
            return self.space.n_configurations
        table = self.assignments(MAX_ENUMERATED)
        return None if table is None else len(table)

    def unseen(self, fixed: Array, seen: Seen, rng: np.random.Generator, most: int) -> Array:
        """Return at most `most` unseen configurations of a finite space, shuffled `[n, P]`.

        There are none if all were seen, or in a space with more than `MAX_ENUMERATED`
        configurations. All have the coordinates of `fixed` `[P]`; NaN leaves one free.
        """
        table = self.assignments(MAX_ENUMERATED)
        if table is None:
            return np.empty((0, self.space.n_parameters))
        table = with_fixed(rng.permutation(table), fixed)
        left = table[distinct(self.space.canonical(table), seen)]
        return (left if np.isnan(fixed).all() else self.kept(left))[:most]

    # ---- whether anything is valid

    def check(self) -> str:
        """Return a warning if few configurations are valid, otherwise an empty text.

        A RuleError says that no valid configuration was found, or what `allows` says.
        """
        if self._valid is None:
            return ""
        examples, n_tried = self._search
        if not len(examples):
            raise RuleError(
                f"valid holds for none of {n_tried} configurations of "
                f"{', '.join(self.space.names)} that were tried. Check it on one that you know "
                "to be valid, or narrow the ranges to where it holds."
            )
        if len(examples) >= MIN_SHARE * n_tried or self.n_configurations is not None:
            return ""
        return (
            f"valid holds for {len(examples)} of {n_tried} configurations that were tried: the "
            "search starts from these. Narrower ranges help, or to compute the last parameter "
            "from the others instead of searching it."
        )

    def may_hold(self, fixed: Array) -> bool:
        """Return whether a valid configuration with coordinates `[P]` was found, NaN if free."""
        if np.isnan(fixed).any():
            return self._valid is None or len(self.examples(fixed)) > 0
        return bool(self.holds(fixed[None])[0])

    def examples(self, fixed: Array) -> Array:
        """Return the valid configurations that were found with given coordinates `[P]`, `[S, P]`.

        Without a predicate none are looked for.
        """
        if self._valid is None:
            return self._no_units
        if np.isnan(fixed).all():
            return self._search[0]
        key = fixed.tobytes()
        if key not in self._examples:
            allowed = self.kept(with_fixed(self._search[0], fixed))
            rng = np.random.default_rng(self._seed)
            examples = allowed if len(allowed) else self._sampled(fixed, MAX_TRIED_FIXED, rng)[0]
            self._examples[key] = examples
        return self._examples[key]

    @cached_property
    def _search(self) -> tuple[Array, int]:
        """Return the valid configurations that were found `[S, P]`, and how many were tried."""
        rng = np.random.default_rng(self._seed)
        free = np.full(self.space.n_parameters, np.nan)
        examples, n_tried = self._sampled(free, MAX_TRIED, rng)
        n = self.space.n_configurations
        if len(examples) < N_EXAMPLES and n is not None and n <= MAX_ENUMERATED:
            return self.unseen(free, Seen(), rng, N_EXAMPLES), n
        return examples, n_tried

    def _sampled(self, fixed: Array, most: int, rng: np.random.Generator) -> tuple[Array, int]:
        """Return valid points by rejection sampling, and how many Sobol points were tried."""
        n_tried, examples = 0, np.empty((0, self.space.n_parameters))
        while len(examples) < N_EXAMPLES and n_tried < most:
            points = with_fixed(
                sobol(self.space.n_parameters, max(N_EXAMPLES, n_tried), rng), fixed
            )
            examples = np.concatenate([examples, self.kept(points)])
            n_tried += len(points)
        return examples[:N_EXAMPLES], n_tried

    # ---- candidates

    def spread(self, n: int, rng: np.random.Generator, fixed: Array) -> Array:
        """Return valid candidates spread over the space `[C, P]`, `n` of them or fewer.

        All have the coordinates of `fixed` `[P]`, NaN leaves one free.
        """
        points = self.kept(with_fixed(sobol(self.space.n_parameters, n, rng), fixed))
        if self._valid is not None and 2 * len(points) < n:
            points = np.concatenate([points, self.examples(fixed)])
        return self._filled(points, self._no_units, n, rng, fixed)

    def children(self, parents: Array, n: int, rng: np.random.Generator, fixed: Array) -> Array:
        """Return valid children of parents `[Q, P]`, see `candidates.mutate`, `[C, P]`.

        Parents have full or canonical coordinates. All children have those of `fixed` `[P]`.
        """
        children = with_fixed(mutate(self.space, parents, n, rng), fixed)
        return self._filled(self.kept(children), parents, n, rng, fixed)

    def broken(self, parents: Array, n: int, rng: np.random.Generator) -> Array:
        """Return those of `n` children of parents `[Q, P]` that may not be tried, `[C, P]`."""
        if self._valid is None:
            return self._no_units
        children = mutate(self.space, parents, n, rng)
        return children[~self.holds(children)]

    def _filled(
        self, found: Array, parents: Array, n: int, rng: np.random.Generator, fixed: Array
    ) -> Array:
        """Return candidates; if fewer than half of `n`, with children along differences added."""
        if self._valid is None or 2 * len(found) >= n:
            return found
        donors = np.concatenate([found, self.examples(fixed)])
        parents = self.kept(with_fixed(rng.random(parents.shape), with_fixed(parents, fixed)))
        parents = parents if len(parents) else donors
        if not len(donors):
            return found
        n_missing = n - len(found)
        start, first, second = (
            rows[rng.integers(len(rows), size=n_missing)] for rows in (parents, donors, donors)
        )
        moved = start + rng.choice(np.asarray(_SCALES), size=(n_missing, 1)) * (first - second)
        is_donated = rng.random(start.shape) < DONATED
        donated = np.where(is_donated, first, start)
        end = np.where(self._is_unordered, donated, np.clip(moved, 0.0, 1.0))
        return np.concatenate([found, self.reached(start, with_fixed(end, fixed))])

    def reached(self, start: Array, end: Array) -> Array:
        """Return the farthest valid one of several points on each line, if any is, `[C, P]`.

        The lines lead from valid coordinates `[n, P]` to others.
        """
        if self._valid is None:
            return end
        valid = [self._no_units]
        for stage in _STAGES:
            points = np.where(self._is_unordered, end, start + stage * (end - start))
            is_valid = self.holds(points)
            valid.append(points[is_valid])
            start, end = start[~is_valid], end[~is_valid]
        return np.concatenate(valid)

    @property
    def _no_units(self) -> Array:
        return np.empty((0, self.space.n_parameters))


class _AbsentError(KeyError):
    """A rule reads a parameter that the configuration does not have."""


class _Configuration(dict[str, Any]):
    """A configuration whose missing parameters raise a distinct error."""

    def __missing__(self, name: str) -> Any:
        raise _AbsentError(name)


def _failure(error: Exception, configuration: Mapping[str, Any]) -> RuleError:
    """Return the error that names the configuration for which a predicate has raised."""
    hint = ""
    if isinstance(error, KeyError):
        hint = (
            " A parameter that is not active is not in the configuration: ask for it by "
            "c.get(name), or first whether name in c."
        )
    kind = KeyError if isinstance(error, KeyError) else type(error)
    return RuleError(f"valid raised {kind.__name__}: {error}, for {dict(configuration)}.{hint}")
