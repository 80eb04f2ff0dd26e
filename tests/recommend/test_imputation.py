"""Pruned trials among complete ones: their places, their values, and who reads them."""

import logging
import math
from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna_worker import reported
from small_spaces import PLANE, history_of, sphere
from test_lists import complete, pruned
from test_universal_proposer import QUICK, SETTINGS

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import Recommender, Trial, TrialState
from dre_plugins.recommend.imputation import imputed_values, joint_list, joint_ranks
from dre_plugins.recommend.lists import trial_lists
from dre_plugins.recommend.settings import Settings


def order(*history: Trial) -> list[int]:
    """Return the positions of trials with a place, the worst first."""
    found = joint_ranks(history)
    placed = [i for i in range(len(history)) if not math.isnan(found[i])]
    return sorted(placed, key=lambda i: found[i])


# --------------------------------------------------------------------------------------- places


def test_complete_trials_are_in_the_order_of_their_values() -> None:
    assert joint_ranks([complete(3.0), complete(1.0), complete(3.0)]).tolist() == [1.0, 0.0, 1.0]


def test_a_pruned_trial_stands_above_those_that_it_beat_at_its_last_step() -> None:
    a, b, c = complete(1.0, s1=0.1), complete(2.0, s1=0.2), complete(3.0, s1=0.3)
    assert order(a, b, c, pruned(s1=0.25)) == [0, 1, 3, 2]
    assert order(a, b, c, pruned(s1=0.05)) == [3, 0, 1, 2]
    assert order(a, b, c, pruned(s1=0.35)) == [0, 1, 2, 3]
    at_other_steps = [complete(1.0, s1=0.1, s3=0.9), complete(2.0, s1=0.2, s3=0.9)]
    assert order(*at_other_steps, pruned(s2=0.15)) == [0, 2, 1]
    further_than_all = pruned(s1=0.05, s2=0.25)
    assert order(a, b, complete(3.0, s1=0.3, s2=math.nan), further_than_all) == [0, 1, 3, 2]
    own_steps = [pruned(**{"s0": -n, f"s{n}": -n}) for n in range(1, 999)]
    assert order(complete(1.0, s0=1.0, s999=1.0), *own_steps) == [*range(998, -1, -1)]


def test_how_many_it_beat_counts_and_not_which() -> None:
    """Where learning curves cross, the place depends on the number of trials that are beaten."""
    assert order(complete(1.0, s1=0.9), complete(2.0, s1=0.1), pruned(s1=0.5)) == [0, 2, 1]


def test_those_of_a_later_step_are_placed_first() -> None:
    history = [
        complete(5.0, s1=0.5, s2=0.6),
        complete(9.0, s1=0.6, s2=0.9),
        pruned(s1=0.9, s2=0.7),  # between the two, as far as it got
        pruned(s1=0.7),  # has beaten both complete ones, and not the pruned one
        pruned(s1=0.1),
        pruned(s1=0.2),
    ]
    assert order(*history) == [4, 5, 0, 2, 3, 1]


def test_equal_reports_share_a_place() -> None:
    found = joint_ranks([complete(1.0, s1=1.0), pruned(s1=0.5), pruned(s1=0.5)])
    assert found[1] == found[2] < found[0]


def test_what_cannot_be_placed() -> None:
    history = [
        Trial({}, TrialState.RUNNING),
        Trial({}, TrialState.FAILED, None, {1.0: 9.0}),
        pruned(s1=math.nan),
        complete(math.nan),
        complete(2.0),
    ]
    assert np.isnan(joint_ranks(history)).tolist() == [True] * 4 + [False]
    assert np.isnan(joint_ranks([])).tolist() == []


def test_only_the_order_of_reports_and_of_values_counts() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(40, 3))

    def history(transformed) -> list[Trial]:
        rows = transformed(draws).tolist()
        return [
            complete(c, s1=a, s2=b)
            if i % 3 == 0
            else pruned(s1=a, s2=b)
            if i % 3
            else pruned(s1=a)
            for i, (a, b, c) in enumerate(rows)
        ]

    assert joint_ranks(history(lambda x: x)).tolist() == joint_ranks(history(np.exp)).tolist()


def test_without_pruned_trials_it_is_the_list_of_final_values() -> None:
    failed = Trial({}, TrialState.FAILED)
    history = [complete(3.0), failed, complete(1.0), Trial({}, TrialState.RUNNING), complete(2.0)]
    for rule in ("worst", "ignore"):
        (expected,) = trial_lists(history, failed=rule, max_length=128)
        found, _ = joint_list(history, failed=rule, max_length=128)
        assert found.trials.tolist() == expected.trials.tolist()
        assert found.ranks.tolist() == expected.ranks.tolist()


# --------------------------------------------------------------------------------------- values


def test_values_lie_between_those_around_them() -> None:
    history = [complete(1.0, s1=0.1), complete(2.0, s1=0.2)]
    history += [pruned(s1=report) for report in (0.15, 0.0, 9.0)]
    assert imputed_values(history, joint_ranks(history)).tolist() == [1.0, 2.0, 1.5, 1.0, 2.0]


@pytest.mark.parametrize("extreme", [math.inf, -math.inf, 1.7e308, -1.7e308])
def test_extreme_values_are_survived(extreme) -> None:
    history = [complete(extreme, s1=0.1), complete(2.0, s1=0.2), pruned(s1=0.15)]
    history += [complete(-extreme, s1=0.3), pruned(s1=0.25)]
    found = imputed_values(history, joint_ranks(history))
    assert np.isfinite(found[[2, 4]]).all() and found[0] == extreme


def test_without_complete_trials_there_are_no_values() -> None:
    history = [pruned(s1=0.1), pruned(s1=0.2)]
    assert np.isnan(imputed_values(history, joint_ranks(history))).all()


# --------------------------------------------------------------------------------- who reads them


def with_reports(history: list[Trial], n_pruned: int) -> list[Trial]:
    """Return the trials with a report each, of which the last ones went no further."""
    reported = [replace(trial, rungs={1.0: trial.value}) for trial in history]
    n = len(history) - n_pruned
    stopped = [replace(trial, state=TrialState.PRUNED, value=None) for trial in reported[n:]]
    return [*reported[:n], *stopped]


@pytest.mark.parametrize("n_pruned", [1, 10, 20])
def test_the_universal_prior_reads_pruned_trials(n_pruned: int) -> None:
    """Reports that tell the final value are worth nearly as much as final values."""
    history = with_reports(history_of(20), n_pruned)
    (suggestion,) = Recommender(PLANE, SETTINGS, seed=0).suggest(history, index=21)
    assert suggestion.source == "universal-prior"
    assert sphere(suggestion.configuration) > -0.15


def test_what_pruned_trials_reported_changes_its_suggestion() -> None:
    def suggested(sign: float) -> dict[str, float]:
        history = with_reports(history_of(12), 6)
        history[6:] = [replace(t, rungs={1.0: sign * t.rungs[1.0]}) for t in history[6:]]
        (suggestion,) = Recommender(PLANE, SETTINGS, seed=0).suggest(history, index=13)
        return suggestion.configuration

    assert suggested(1.0) != suggested(-1.0)


def test_a_study_with_the_default_pruner_of_optuna_takes_turns(caplog) -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)
        return reported(trial, (x - 0.4) ** 2 + (y + 0.7) ** 2, n_steps=3)

    sampler = DRESampler(seed=1, settings=Settings(preset=QUICK))
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study.optimize(objective, n_trials=24)
    states = [trial.state for trial in study.trials]
    assert states.count(optuna.trial.TrialState.PRUNED) >= 1
    asked = {sampler.explain(study, number).source for number in (*range(3, 20), 21, 23)}
    assert asked == {"universal-prior"} and sampler.stats["skipped_turns"] == 0
    texts = [record.getMessage() for record in caplog.records]
    assert sum("The universal prior suggests from trial 3 on" in text for text in texts) == 1
