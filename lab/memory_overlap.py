"""Does a study learn anything from past ones of which it shares only its own half?

    PYTHONPATH=.:benchmarks:lab nice python lab/memory_overlap.py run base.jsonl runs.jsonl 34
    PYTHONPATH=.:benchmarks:lab python lab/memory_overlap.py report runs.jsonl

`base.jsonl` holds past studies on training tasks, see `memory_priors.py base`. A present study of
ten trials on a validation task begins with all past studies of a case, or with those only that
have half of their own parameters in common with it, too. All are in spaces of their own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import optuna
from memory_lives import Row, Variant, middle, read, scenario_of, variant_of
from memory_priors import space_of

from dre_plugins import DRESampler, Memory
from dre_plugins.memory.access import StudyMemory
from dre_plugins.memory.recorded_study import Header
from dre_plugins.recommend.trials import Trial, TrialState

N_TRIALS = 10
AT = (1, 3, 5, 10)
BOOSTING = "boosting-diabetes"
NARROW = ("nrounds", "eta", "max_depth", "subsample", "min_child_weight", "colsample_bytree")
# Present scenario, past ones that overlap one way and both ways, at most so many of each.
CASES: Mapping[str, tuple[str, str, int, str, int]] = {
    "boosted trees from XGBoost": (BOOSTING, "rbv2_xgboost", 6, "", 0),
    "a few parameters of XGBoost from all": ("narrow", "rbv2_xgboost", 6, "", 0),
    "boosted trees from those and XGBoost": (BOOSTING, "rbv2_xgboost", 6, BOOSTING, 1),
    "decision trees from boosted trees": ("rbv2_rpart", BOOSTING, 3, "", 0),
}


def tasks_of(name: str) -> Sequence[int]:
    """Return validation tasks; of boosted trees also two training tasks that no past study has."""
    if name == BOOSTING:
        splits = scenario_of(name).splits
        return sorted([*splits["train"][4:6], *splits["validation"]])
    return sorted(scenario_of("rbv2_xgboost" if name == "narrow" else name).splits["validation"])


def present(name: str, seed: int) -> Variant:
    if name != "narrow":
        return variant_of("varied", name, seed)
    whole = variant_of("same", "rbv2_xgboost", seed)
    kept = set(np.random.default_rng(seed).choice(NARROW, 4, replace=False))
    chosen = tuple(p for p in whole.parameters if p.name in kept)
    fixed = {p.name: middle(p) for p in whole.parameters if p.name not in kept}
    return replace(whole, parameters=chosen, fixed={**fixed, "booster": "gbtree"})


def boosting_studies(path: Path) -> None:
    """Add past studies of boosted trees to the file."""
    done = {row["key"] for row in read(path)}
    for place in range(4):
        key, seed = f"{BOOSTING} {place}", 7000 + place
        if key in done:
            continue
        variant = variant_of("varied", BOOSTING, seed)
        task = int(scenario_of(BOOSTING).splits["train"][place])
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
        )
        study.optimize(lambda t, v=variant, k=task: v.objective(t, k), n_trials=40)
        row = {"key": key, "name": BOOSTING, "task": task, "seed": seed}
        row |= {"values": [t.value for t in study.trials]}
        row |= {"params": [t.params for t in study.trials]}
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def remember(memory: Memory, row: Row) -> None:
    counted: Counter[str] = Counter()
    logger = optuna.logging.get_logger("lab")
    key = row["key"]
    header = Header(
        study=key.replace(" ", "-"), name=key, framework="optuna", directions=("maximize",)
    )
    study = StudyMemory(memory, header, stats=counted, logger=logger)
    space = space_of(variant_of("varied", row["name"], row["seed"]))
    for number, (params, value) in enumerate(zip(row["params"], row["values"], strict=True)):
        ended = Trial(params, TrialState.COMPLETE, value)
        study.record(number, lambda ended=ended: (ended, space))
    assert not counted, counted


@cache
def reference(name: str, task: int) -> tuple[float, float]:
    """Return the best and the median value of random configurations."""
    variant = variant_of("same", "rbv2_xgboost" if name == "narrow" else name, 0)
    n_drawn = 40 if name == BOOSTING else 1000
    values = variant.drawn(task, n_drawn, np.random.default_rng(task))
    return float(values.max()), float(np.median(values))


def tuned(variant: Variant, task: int, seed: int, past: Sequence[Row]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder))
        for row in past:
            remember(memory, row)
        sampler = DRESampler(seed=seed, prior="universal", memory=memory)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(lambda trial: variant.objective(trial, task), n_trials=N_TRIALS)
        assert not sampler.stats["memory_errors"]
        values = [trial.value for trial in study.trials]
        return {"values": values, "past": sampler.stats["past_studies"]}


def run(base: Path, path: Path, n_repeats: int, cases: Sequence[str]) -> None:
    boosting_studies(base)
    rows = read(base)
    done = {row["key"] for row in read(path)}
    for repeat in range(n_repeats):
        for case in cases:
            name, one_way, n_one, both_ways, n_both = CASES[case]
            rng = np.random.default_rng([5, repeat, n_one, n_both])
            pool = tasks_of(name)
            task, seed = int(pool[repeat % len(pool)]), 8500 + repeat
            count = int(rng.integers(1, n_one + 1))
            drawn = rng.permutation([row for row in rows if row["name"] == one_way])[:count]
            kept = rng.permutation([row for row in rows if row["name"] == both_ways])[:n_both]
            for rule, past in (("half", [*drawn, *kept]), ("both", kept)):
                key = f"{case} {repeat} {rule}"
                if key in done:
                    continue
                top, median = reference(name, task)
                found = tuned(present(name, seed), task, seed, past)
                row = {"key": key, "case": case, "repeat": repeat, "rule": rule}
                with path.open("a") as file:
                    file.write(json.dumps({**row, "top": top, "median": median, **found}) + "\n")


def report(rows: Sequence[Row]) -> None:
    for case in CASES:
        pairs: dict[int, dict[str, Row]] = {}
        for row in rows:
            if row["case"] == case:
                pairs.setdefault(row["repeat"], {})[row["rule"]] = row
        whole = [pair for pair in pairs.values() if len(pair) == 2]
        if not whole:
            continue
        regrets = np.array([regrets_of(pair) for pair in whole])  # [pair, rule, T]
        half, both = regrets[:, 0], regrets[:, 1]
        drawn = np.random.default_rng(0).integers(len(whole), size=(2000, len(whole)))
        error = (half[drawn].mean(1) / both[drawn].mean(1)).std(0)
        used = np.mean([pair["half"]["past"] for pair in whole])
        print(f"{case} ({len(whole)} pairs, {used:.1f} past studies learnt from)")
        print("    half", half.mean(0).round(3), "both", both.mean(0).round(3))
        ratio = (half.mean(0) / both.mean(0)).round(2)
        print("    ratio", ratio, "±", error.round(2), (half < both).sum(0), (half > both).sum(0))


def regrets_of(pair: Mapping[str, Row]) -> np.ndarray:
    best = max(pair["half"]["top"], *(max(row["values"]) for row in pair.values()))
    scale = best - pair["half"]["median"]
    places = np.array(AT) - 1
    lines = [np.maximum.accumulate(pair[rule]["values"])[places] for rule in ("half", "both")]
    return (best - np.array(lines)) / scale


def main() -> None:
    what, *arguments = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if what == "run":
        base, path, n_repeats, *cases = arguments
        run(Path(base), Path(path), int(n_repeats), cases or [*CASES])
    else:
        report(read(Path(arguments[0])))


if __name__ == "__main__":
    main()
