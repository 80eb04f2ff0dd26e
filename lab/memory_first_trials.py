"""What past studies are worth in the first ten trials, tried as they were or learnt from.

    PYTHONPATH=.:benchmarks:lab nice python lab/memory_first_trials.py first 50 first.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_first_trials.py show first.jsonl
    PYTHONPATH=.:benchmarks:lab nice python lab/memory_first_trials.py run 40 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_first_trials.py report runs.jsonl

`first` makes no studies: it evaluates what was best in five past studies, in several orders. `run`
makes studies of ten trials, whose memory holds the same kind of past studies, by the rules below.
Past studies, search spaces and regret are those of `transfer_rivals.py`; all present tasks are
validation tasks. N_PAST is another number of past studies. The rules patch the sampler, which has
none of them. A run goes on where it was interrupted.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from memory_lives import Row, Variant, middle, read, reference, scenario_of, space_of, variant_of
from transfer_rivals import past_study, remembered, shown

from dre_plugins import DRESampler, MetaDataset, Prior
from dre_plugins.memory import study as study_memory
from dre_plugins.recommend import Recommender, Trial, TrialState
from dre_plugins.recommend.posterior import ValuePosterior
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.search import CandidatePool
from dre_plugins.recommend.surrogates import Surrogates
from dre_plugins.space import SearchSpace
from dre_plugins.space.candidates import recombine, with_fixed
from dre_plugins.space.seen import distinct
from dre_plugins.transfer import training
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.spaces.alignment import align

N_PAST = int(os.environ.get("N_PAST", "5"))
N_TRIALS, N_FIRST, N_BEST, N_MIXED = 10, 5, 8, 4
AT = (1, 2, 3, 5, 10)
LIVES = ("varied", "same")
NAMES = ("rbv2_xgboost", "rbv2_rpart")
MAX_REGRET = 3.0
Array = np.ndarray


@dataclass(frozen=True)
class Rule:
    """Which suggestions of a memory are what was best in past studies.

    Args:
        until: Those before this number, as far as any are left; the others are today's.
        in_a_row: Before this number all suggestions are the memory's, not even ones only.
        is_free: Whether those in a row are so even if trials contradict the memory.
        is_mixed: Whether recombinations of the best are tried.
        without: Numbers in a row that are not the memory's.
    """

    until: int = 0
    in_a_row: int = 0
    is_free: bool = False
    is_mixed: bool = False
    without: tuple[int, ...] = ()


RULES: Mapping[str, Rule] = {
    "none": Rule(),
    "today": Rule(),
    "even": Rule(until=10),
    "three": Rule(until=10, in_a_row=3),
    "three, unchecked": Rule(until=10, in_a_row=3, is_free=True),
    "three, then today's": Rule(until=3, in_a_row=3, is_free=True),
    "five, unchecked": Rule(until=10, in_a_row=5, is_free=True),
    "three, Sobol between": Rule(until=4, in_a_row=4, without=(1,)),
    "three mixtures, then today's": Rule(until=3, in_a_row=3, is_free=True, is_mixed=True),
}
STANDARD = ("none", "today", "even", "three, unchecked")


# ---- what is expected of configurations on past tasks


class Expected:
    """Hold what the universal prior expects on past tasks, from their own trials."""

    def __init__(self, tasks: Sequence[Task], space: SearchSpace, least: float = -1.0) -> None:
        self._space = space
        self._least = least  # regret: below 0 is better than all that a past task has tried
        self._tasks = tasks
        self._posteriors = [ValuePosterior.of(task.space, task.trials()) for task in tasks]

    def regrets(self, units: Array) -> Array:
        """Return regrets `[T, C]`: 0 is the best of a past task, 1 its median."""
        canonical = self._space.canonical(units)
        rows = []
        for task, posterior in zip(self._tasks, self._posteriors, strict=True):
            placed = align(self._space, task.space).convert(canonical)
            mean, _ = posterior.predicted(np.clip(placed, 0.0, 1.0))
            best = np.nanmax(task.values)
            scale = best - np.nanmedian(task.values) or 1.0
            rows.append(np.clip((best - mean) / scale, self._least, MAX_REGRET))
        return np.array(rows)

    def portfolio(self, donors: Array, count: int, n_mixings: int, seed: int) -> Array:
        """Return configurations, each of which lowers the mean regret of the best so far most."""
        rng = np.random.default_rng(seed)
        best = np.full((len(self._tasks), 1), np.inf)
        chosen: list[Array] = []
        for _ in range(min(count, len(donors))):
            pool, regrets = donors, self.regrets(donors)
            for _ in range(n_mixings):
                order = np.argsort(np.minimum(best, regrets).mean(0), kind="stable")
                mixed = recombine(pool[order[:8]], donors, 256, rng)
                pool = np.concatenate([pool, mixed])
                regrets = np.concatenate([regrets, self.regrets(mixed)], axis=1)
            means = np.minimum(best, regrets).mean(0)
            for units in chosen:
                means[np.isclose(pool, units, rtol=0.0, atol=1e-9, equal_nan=True).all(1)] = np.inf
            place = int(means.argmin())
            chosen.append(pool[place])
            best = np.minimum(best, regrets[:, [place]])
        return np.array(chosen)


def filled(favourites: Array) -> Array:
    """Return coordinates with the median of the others where a past study says nothing."""
    lacking = np.isnan(favourites)
    known = np.where(lacking.all(0), 0.5, favourites)
    return np.where(lacking, np.nanmedian(known, axis=0), favourites)


# ---- rules, put into the sampler

rule = RULES["today"]
_favourites, _pool = training.favourites_of, EnsembleProposer._new_pool
_is_universal_turn, _concordance = study_memory.is_universal_turn, study_memory.concordance
_needs_contrast = Surrogates._needs_contrast


def favourites_of(metadata: MetaDataset, space: SearchSpace) -> Array:
    favourites = _favourites(metadata, space)
    if not rule.until:
        return favourites
    tasks = [task for task in metadata if task.n_complete]
    if rule.is_mixed:
        mixed = Expected(tasks, space).portfolio(filled(favourites), N_FIRST, 3, 0)
        return np.concatenate([mixed, favourites])
    return Expected(tasks, space, 0.0).portfolio(favourites, len(favourites), 0, 0)


def new_pool(self: Any, acquisition: Any, request: Any) -> CandidatePool:
    if request.index >= rule.until or not self._past_studies:
        return _pool(self, acquisition, request)
    space, fixed = self._evidence.space, request.fixed
    favourites = filled(np.concatenate([prior.favourites for prior in self._priors]))
    given = ~np.isnan(fixed)  # of a define-by-run study: what agrees with it comes first
    apart = np.nan_to_num(np.abs(space.canonical(favourites)[:, given] - fixed[given]), nan=1.0)
    order = np.argsort(apart.sum(1).round(6), kind="stable")
    left = with_fixed(favourites[order], fixed)
    left = left[distinct(space.canonical(left), request.seen)]
    if not len(left):
        return _pool(self, acquisition, request)
    return CandidatePool(left[:1], self._ensemble.predictions(left[:1]))


def patch() -> None:
    training.favourites_of = favourites_of
    EnsembleProposer._new_pool = new_pool
    study_memory.is_universal_turn = lambda n: (
        n in rule.without if n < rule.in_a_row else _is_universal_turn(n)
    )
    study_memory.concordance = lambda prior, space, history: (
        0.0
        if rule.is_free and len(history) < rule.in_a_row
        else _concordance(prior, space, history)
    )
    Surrogates._needs_contrast = lambda self, chosen: (
        self.batch.numbers[0] >= rule.in_a_row and _needs_contrast(self, chosen)
    )


# ---- what both commands do


@cache
def past_studies(life: str, name: str, seed: int) -> list[Row]:
    train = scenario_of(name).splits["train"]
    drawn = np.random.default_rng([13, seed]).choice(train, N_PAST, replace=False)
    return [past_study(life, name, int(task)) for task in drawn]


def cases(n_seeds: int, first: int, key: int) -> Iterator[tuple[str, str, int, int]]:
    """Yield kind of spaces, scenario, validation task and seed."""
    for number in range(n_seeds):
        for life in LIVES:
            for name in NAMES:
                pool = scenario_of(name).splits["validation"]
                pool = np.random.default_rng(key).permutation(pool)
                yield life, name, int(pool[number % len(pool)]), first + number


def append(path: Path, row: Row) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


# ---- without studies


def run_first(n_seeds: int, path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for life, name, task, seed in cases(n_seeds, 30_000, 14):
        key = f"{life} {name} {seed}"
        if key not in done:
            row = {"key": key, "life": life, "name": name}
            append(path, {**row, **first_regrets(life, name, task, seed)})


def first_regrets(life: str, name: str, task: int, seed: int) -> Row:
    """Return the regret after one to five trials of each order."""
    variant = variant_of(life, name, seed)
    space = space_of(shown(variant))
    tasks = [task_of(number, row) for number, row in enumerate(past_studies(life, name, seed))]
    best = [np.argsort(-task.values, kind="stable")[:N_BEST] for task in tasks]
    alignments = [align(past.space, space) for past in tasks]
    placed = [a.convert(past.units) for a, past in zip(alignments, tasks, strict=True)]
    donors = np.concatenate([rows[order] for rows, order in zip(placed, best, strict=True)])
    donors = np.clip(filled(donors), 0.0, 1.0)
    expected = Expected(tasks, space)
    mixed = donors[np.arange(len(donors)) % N_BEST < N_MIXED]
    own, rng = donors[::N_BEST], np.random.default_rng(seed)
    prior = Prior.of_few(MetaDataset(tuple(tasks)))
    scores = prior.scores(space, space.canonical(donors))
    found = {
        "best of each, random order": rng.permutation(own),
        "best of each, greedy": expected.portfolio(own, N_FIRST, 0, seed),
        "eight of each, greedy": expected.portfolio(donors, N_FIRST, 0, seed),
        "eight of each, by mean": donors[np.argsort(expected.regrets(donors).mean(0))],
        "eight of each, by the scorers": donors[np.argsort(-scores, kind="stable")],
        "mixtures, greedy": expected.portfolio(mixed, N_FIRST, 3, seed),
        "random": rng.random((N_FIRST, space.n_parameters)),
        "centre": np.full((1, space.n_parameters), 0.5),
        "today's first": Recommender(space, seed=seed, prior=prior)
        .suggest((), index=0)[0]
        .units[None],
        "all eight of each": donors,
    }
    top, median = reference(life, name, task, seed)
    values = {what: values_of(variant, task, space, units) for what, units in found.items()}
    top = max(top, values["all eight of each"].max())
    regrets = {what: (top - v) / (top - median) for what, v in values.items()}
    row = {what: np.minimum.accumulate(r[:N_FIRST]).tolist() for what, r in regrets.items()}
    row["oracle, best of each"] = [float(regrets["all eight of each"][::N_BEST].min())]
    row["oracle, eight of each"] = [float(regrets["all eight of each"].min())]
    del row["all eight of each"]
    return row


def task_of(number: int, row: Row) -> Task:
    rows = zip(row["params"], row["values"], strict=True)
    trials = [Trial(found, TrialState.COMPLETE, float(value)) for found, value in rows]
    return Task.from_trials(f"past{number}", space_of(shown(row["variant"])), trials)


def values_of(variant: Variant, task: int, space: SearchSpace, units: Array) -> Array:
    old = {new: name for name, new in variant.names.items()}
    middles = {p.name: middle(p) for p in variant.parameters}
    values = []
    for row in units:
        found = space.to_configuration(row, include_inactive=True)
        named = {old.get(name, name): value for name, value in found.items()}
        values.append(variant.scenario.value(task, variant.whole({**middles, **named})))
    return np.array(values)


def show(rows: Sequence[Row]) -> None:
    for life in LIVES:
        for name in NAMES:
            chosen = [row for row in rows if (row["life"], row["name"]) == (life, name)]
            print(f"{life} {name} {len(chosen)}: mean and median after 1 to {N_FIRST}")
            for what in [key for key in chosen[0] if isinstance(chosen[0][key], list)]:
                found = np.array([row[what] for row in chosen])
                print(f"    {what:30}", found.mean(0).round(2), np.median(found, 0).round(2))


# ---- studies


def run(n_seeds: int, path: Path, rules: Sequence[str]) -> None:
    global rule
    patch()
    done = {row["key"] for row in read(path)}
    for life, name, task, seed in cases(n_seeds, 40_000, 15):
        top, median = reference(life, name, task, seed)
        for label in rules:
            key = f"{life} {name} {seed} {label}"
            if key in done:
                continue
            rule = RULES[label]
            row = {"key": key, "life": life, "name": name, "seed": seed, "rule": label}
            row |= {"top": top, "median": median}
            append(path, {**row, **tuned(life, name, task, seed, is_remembered=label != "none")})


def tuned(life: str, name: str, task: int, seed: int, *, is_remembered: bool) -> Row:
    variant, past = variant_of(life, name, seed), past_studies(life, name, seed)
    with tempfile.TemporaryDirectory() as folder:
        memory = remembered(Path(folder), past) if is_remembered else False
        sampler = DRESampler(seed=seed, prior="universal", memory=memory)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(lambda trial: variant.objective(trial, task), n_trials=N_TRIALS)
    assert not sampler.stats["fallbacks"] and not sampler.stats["memory_errors"]
    return {
        "values": [trial.value for trial in study.trials],
        "sources": [sampler.explain(study, trial).source for trial in study.trials],
        "contradicted": sampler.stats["memory_contradicted"],
    }


def report(rows: Sequence[Row]) -> None:
    studies: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in rows:
        studies.setdefault((row["life"], row["name"], row["seed"]), {})[row["rule"]] = row
    groups = [("", ""), *((life, "") for life in LIVES)]
    groups += [(life, name) for life in LIVES for name in NAMES]
    for label in dict.fromkeys(row["rule"] for row in rows):
        for life, name in groups:
            chosen = [
                found
                for key, found in studies.items()
                if {label, "today"} <= {*found} and key[0].startswith(life) and name in key[1]
            ]
            if len(chosen) > 2 and label != "today":
                line(f"{label}; {life or 'all'} {name}", chosen, label)


def line(what: str, chosen: Sequence[Mapping[str, Row]], label: str) -> None:
    ours, theirs = (np.array([regrets_of(found, r) for found in chosen]) for r in (label, "today"))
    drawn = np.random.default_rng(0).integers(len(chosen), size=(2000, len(chosen)))
    error = (ours[drawn].mean(1) / theirs[drawn].mean(1)).std(0)
    print(f"{what} ({len(chosen)})", ours.mean(0).round(3), theirs.mean(0).round(3))
    ratio = (ours.mean(0) / theirs.mean(0)).round(2)
    print("    ratio", ratio, "±", error.round(2), (ours < theirs).sum(0), (ours > theirs).sum(0))


def regrets_of(found: Mapping[str, Row], label: str) -> Array:
    top = max(found[label]["top"], *(max(row["values"]) for row in found.values()))
    best = np.maximum.accumulate(found[label]["values"])[np.array(AT) - 1]
    return (top - best) / (top - found[label]["median"])


def main() -> None:
    what, *arguments = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if what == "first":
        run_first(int(arguments[0]), Path(arguments[1]))
    elif what == "run":
        run(int(arguments[0]), Path(arguments[1]), arguments[2:] or STANDARD)
    else:
        {"show": show, "report": report}[what](read(Path(arguments[0])))


if __name__ == "__main__":
    main()
