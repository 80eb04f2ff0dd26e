"""Random programs over few values: what was evaluated is not run again while anything is left.

A program asks for a parameter where one of several conjunctions of earlier values holds, so that
parameters depend on several others and branches share them; it fails, or is pruned, at any place.
Which of its runs there are is counted by running it on every assignment of values.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from cases import cases
from hypothesis import given, strategies as st

optuna = pytest.importorskip("optuna")

from histories import SETTINGS  # noqa: E402

from dre_plugins.adapters.optuna import DRESampler  # noqa: E402

Values = Mapping[str, Any]
Run = tuple[tuple[str, Any], ...]

N_TRIALS = 24
CHOICES = ((False, True), ("a", "b", "c"), (1, 2, 4), ("x",))


@dataclass(frozen=True)
class Clause:
    """A conjunction: each of some parameters was asked for and has one of its values."""

    wanted: Mapping[str, tuple[Any, ...]]

    def holds(self, values: Values) -> bool:
        return all(name in values and values[name] in few for name, few in self.wanted.items())


@dataclass(frozen=True)
class Step:
    """A parameter that is asked for if a clause holds, or an end that comes if one does."""

    name: str
    choices: tuple[Any, ...]
    clauses: tuple[Clause, ...]

    def is_due(self, values: Values) -> bool:
        return any(clause.holds(values) for clause in self.clauses)


class Stop(Exception):
    """The program fails or is pruned."""


def walk(program: list[Step], suggest: Callable[[Step], Any]) -> dict[str, Any]:
    """Run a program; what it has asked for is in the exception that stops it, too."""
    values: dict[str, Any] = {}
    for step in program:
        if not step.is_due(values):
            continue
        if not step.choices:
            raise Stop(step.name, values)
        values[step.name] = suggest(step)
    return values


def runs(program: list[Step]) -> set[Run]:
    """Return every run that the program has."""
    asking = [step for step in program if step.choices]
    found = set()
    for assignment in product(*(step.choices for step in asking)):
        all_values = dict(zip([step.name for step in asking], assignment, strict=True))
        try:
            values = walk(program, lambda step, values=all_values: values[step.name])
        except Stop as stop:
            values = stop.args[1]
        found.add(run_of(values))
    return found


def run_of(values: Values) -> Run:
    return tuple(sorted(values.items()))


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    always = (Clause({}),)
    program: list[Step] = []
    for place in range(draw(st.integers(2, 6))):
        asked = {step.name: step.choices for step in program if step.choices}
        clauses = always
        if asked and draw(st.integers(0, 3)):
            clauses = tuple(draw(st.lists(clauses_over(asked), min_size=1, max_size=2)))
        kind = draw(st.sampled_from(["ask", "ask", "ask", "fail", "prune"])) if asked else "ask"
        if kind == "ask":
            choices = draw(st.sampled_from(CHOICES) | st.integers(2, 6).map(range).map(tuple))
            program.append(Step(f"p{place}", choices, clauses))
        elif clauses is not always:
            program.append(Step(kind, (), clauses))
    return program


@st.composite
def clauses_over(draw: st.DrawFn, asked: Mapping[str, tuple[Any, ...]]) -> Clause:
    names = draw(st.lists(st.sampled_from([*asked]), min_size=1, max_size=3, unique=True))
    return Clause(
        {
            name: tuple(draw(st.lists(st.sampled_from(asked[name]), min_size=1, max_size=2)))
            for name in names
        }
    )


def suggested(trial: Any, step: Step) -> Any:
    if step.choices == tuple(range(len(step.choices))) and len(step.choices) > 2:
        return trial.suggest_int(step.name, 0, len(step.choices) - 1)
    return trial.suggest_categorical(step.name, step.choices)


@cases(6)
@given(programs(), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_nothing_is_run_again_while_anything_is_left(
    program: list[Step], seed: int, salt: int
) -> None:
    def objective(trial: Any) -> float:
        try:
            values = walk(program, lambda step: suggested(trial, step))
        except Stop as stop:
            if stop.args[0] == "fail":
                raise
            trial.report(1.0, 0)
            raise optuna.TrialPruned from None
        return random.Random(f"{salt} {run_of(values)}").randrange(50)

    sampler = DRESampler(
        seed=seed, settings=SETTINGS, n_startup_trials=4, warn_independent_sampling=False
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=N_TRIALS, catch=Stop)
    assert sampler.stats["fallbacks"] == 0
    left = runs(program)
    done: set[Run] = set()
    failed: Counter[tuple[str, ...]] = Counter()
    for trial in study.trials:
        run = run_of(trial.params)
        is_exhausted = sampler.explain(study, trial).source == "exhausted"
        if run in done and left:
            # A failure that asked for less than others may have been an accident.
            assert trial.state is optuna.trial.TrialState.FAIL, (run, left)
            failed[tuple(trial.params)] += 1
        assert not is_exhausted or not left, left
        done.add(run)
        left.discard(run)
    assert all(n == 1 for n in failed.values()), failed
