"""Who proposes a suggestion: start-up points, the ensemble, the universal prior."""

import logging
import math
from collections import Counter
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from small_spaces import PLANE, ProgressOf, history_of, sphere, told
from syne_tune.config_space import uniform
from test_universal_proposer import QUICK, SETTINGS

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.adapters.syne_tune import DRESearcher
from dre_plugins.engine import PRESETS
from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.schedule import TurnRules, proposer_for, reads_past_tasks
from dre_plugins.recommend.settings import Settings
from dre_plugins.study import AskTell

pytestmark = pytest.mark.usefixtures("few_candidates")


def sources(history, count: int = 4, settings=SETTINGS, **arguments) -> list[str]:
    recommender = Recommender(PLANE, settings, seed=0)
    made = [recommender.suggest(history, index=index, **arguments)[0] for index in range(count)]
    return [suggestion.source for suggestion in made]


@pytest.mark.parametrize("acquisition", [None, "log-rank-ei", "lcb"])
def test_an_acquisition_is_that_of_the_ensemble_in_its_turns(acquisition) -> None:
    settings = replace(SETTINGS, acquisition=acquisition)
    assert sources(history_of(8), settings=settings) == ["model", "universal-prior"] * 2


ENSEMBLE_ALONE = replace(QUICK, universal_turns=False)
MAKE = {
    "optuna": DRESampler,
    "ray": DRESearch,
    "syne-tune": lambda **given: DRESearcher({"x": uniform(0.0, 1.0)}, **given),
}


@pytest.mark.parametrize("preset", ["paper", ENSEMBLE_ALONE], ids=["paper", "preset"])
@pytest.mark.parametrize("way", ["optuna", "ray", "syne-tune"])
def test_the_file_of_a_universal_prior_needs_a_preset_with_turns(way, preset) -> None:
    path = str(files("dre_plugins.universal") / "prior.safetensors")
    with pytest.raises(ValueError, match=r"prior must not be the file.*universal_turns=True"):
        MAKE[way](prior=path, settings=Settings(preset=preset))
    MAKE[way](prior=path)


def skipped(caplog, history, settings=SETTINGS) -> tuple[int, list[str]]:
    """Return how many of four turns were skipped, and what was logged of it."""
    stats: Counter[str] = Counter()
    recommender = Recommender(PLANE, settings, seed=0, stats=stats)
    with caplog.at_level(logging.INFO, "dre_plugins"):
        for index in range(4):
            recommender.suggest(history, index=index)
    texts = [record.getMessage() for record in caplog.records]
    return stats["skipped_turns"], [text for text in texts if "no turns" in text]


def test_turns_that_a_named_preset_lacks_are_counted_and_said_once(caplog, monkeypatch) -> None:
    assert skipped(caplog, history_of(8)) == (0, [])
    assert skipped(caplog, history_of(8), replace(SETTINGS, preset=ENSEMBLE_ALONE)) == (0, [])
    monkeypatch.setitem(PRESETS, "paper", ENSEMBLE_ALONE)  # the real one takes minutes
    assert skipped(caplog, history_of(2), replace(SETTINGS, preset="paper")) == (0, [])
    n_skipped, (text,) = skipped(caplog, history_of(8), replace(SETTINGS, preset="paper"))
    assert n_skipped == 2 and "the preset is the ensemble alone" in text


def test_what_past_studies_expect_is_read_for_one_objective_while_few_trials_have_ended() -> None:
    numbers = [n for n in range(20) if reads_past_tasks(ProgressOf(n_ended=n))]
    assert numbers == [*range(3, 12)]
    assert not reads_past_tasks(ProgressOf(n_ended=5, n_objectives=2))


def test_who_proposes_is_a_function_of_number_progress_and_rules() -> None:
    progress = ProgressOf(n_ended=12)

    def row(progress: ProgressOf, given: dict | None = None, n: int = 4, first=24, **rules) -> str:
        numbers = range(first, first + n)
        turns = [proposer_for(i, progress, TurnRules(**rules), **given or {}) for i in numbers]
        return "".join(turn[0] for turn in turns)

    assert row(progress) == "mumu"
    assert row(progress, is_universal=False) == "mmmm"
    early = replace(progress, n_ended=3)
    assert row(early) == "ruru" and row(early, first=16, n=6) == "uuuuru"
    assert row(early, first=4, is_universal=False) == row(replace(early, n_ended=2)) == "rrrr"
    assert row(replace(progress, n_ended=4), n_startup_trials=4) == "mumu"
    assert row(replace(progress, n_ended=9), has_prior=True) == "mmmm"
    assert row(progress, has_prior=True) == "mumu"
    assert row(replace(progress, n_ended=0, can_rank=False), has_prior=True) == "mmmm"
    nothing = replace(progress, n_ended=0, can_rank=False, lists=False)
    assert row(nothing, has_prior=True) == "pppp"
    assert row(nothing, {"needs_contrast": True}, has_prior=True) == "cccc"
    assert row(progress, {"needs_contrast": True}, has_prior=True) == "cucu"
    assert row(nothing, n=22, first=0, has_past_tasks=True) == "pp" + "pr" * 9 + "rr"
    begun = replace(progress, n_ended=2)
    assert row(begun, n=20, first=2, has_past_tasks=True) == "u" * 18 + "ru"
    assert row(replace(begun, can_rank=False), first=2, has_past_tasks=True) == "prpr"
    assert row(begun, first=2, has_past_tasks=True, n_startup_trials=5) == "rrrr"
    assert row(nothing, first=0, has_past_tasks=True, is_universal=False) == "pppr"
    assert row(replace(progress, can_rank=False)) == "rrrr"
    assert row(replace(progress, n_objectives=2)) == "mumu"
    stagnating = replace(progress, n_since_incumbent=8)
    assert row(stagnating, n=9) == "mumumumum"
    assert row(stagnating, n=9, is_universal=False) == "mmemmemme"
    assert row(stagnating, {"may_explore": False}, n=9, is_universal=False) == "mmmmmmmmm"


def test_trials_with_constraints_take_turns_as_well() -> None:
    history = history_of(8)
    for constraints in ({"c": -1.0}, {"c": 1.0}, {"c": math.nan}, {}):
        met = [replace(trial, constraints={"c": -1.0}) for trial in history[2:]]
        others = [replace(trial, constraints=constraints) for trial in history[:2]]
        assert sources([*others, *met]) == ["model", "universal-prior"] * 2


@pytest.mark.parametrize(("given", "first"), [(None, 10), (0, 10), (14, 14)])
def test_beside_a_prior_they_begin_later(given, first) -> None:
    from test_recommender_prior import PRESET, SPACE, FixedPrior, observed

    preset = replace(PRESET, universal_turns=True)
    settings = RecommenderSettings(preset=preset, n_startup_trials=given)
    recommender = Recommender(SPACE, settings, seed=0, prior=FixedPrior())
    trials = observed(np.random.default_rng(0).random((first, 2)))
    before, after = (
        [recommender.suggest(trials[:n], index=i)[0].source for i in (first, first + 1)]
        for n in (first - 1, first)
    )
    assert "universal-prior" not in before and after.count("universal-prior") == 1


EARLY = RecommenderSettings(preset=QUICK)  # the universal prior is alone until the twentieth


@pytest.mark.parametrize(
    ("n", "settings", "turns"),
    [(12, SETTINGS, ["model", "universal-prior"] * 3), (6, EARLY, ["universal-prior"] * 4)],
)
def test_a_batch_takes_turns_and_repeats_nothing(n, settings, turns) -> None:
    recommender = Recommender(PLANE, settings, seed=0)
    batch = recommender.suggest(history_of(n), len(turns), index=n)
    assert [suggestion.source for suggestion in batch] == turns
    points = np.array([[*suggestion.configuration.values()] for suggestion in batch])
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    assert distances[np.triu_indices(len(turns), 1)].min() > 1e-3


# -------------------------------------------------------------------------------- in the start-up


def in_order(n: int, **arguments) -> list[str]:
    """Return who makes each of the first suggestions of a study."""
    study = AskTell(
        PLANE, direction="maximize", seed=0, settings=Settings(preset=QUICK), **arguments
    )
    found = []
    for _ in range(n):
        number, configuration = study.ask()
        found.append(study.explain(number).source)
        study.tell(number, sphere(configuration))
    return found


def test_the_universal_prior_begins_after_three_trials_and_is_alone_until_the_twentieth() -> None:
    early = ["random"] * 3 + ["universal-prior"] * 17
    assert in_order(24) == early + ["model", "universal-prior"] * 2


def test_start_up_trials_that_are_asked_for_are_space_filling() -> None:
    assert in_order(10, n_startup_trials=8)[:8] == ["random"] * 8
    early = ["universal-prior", "model", "universal-prior"]
    assert in_order(6, n_startup_trials=3) == ["random"] * 3 + early


def test_only_trials_that_have_ended_let_it_join() -> None:
    running = [replace(trial, state=TrialState.RUNNING, value=None) for trial in history_of(9)]
    failed = [Trial(trial.configuration, TrialState.FAILED) for trial in history_of(9)]
    for history in (running, failed, history_of(2) + running[2:]):
        assert sources(history, 10, EARLY) == ["random"] * 10
    one_is_known = [*failed[:8], history_of(9)[8]]
    assert sources(one_is_known, 2, EARLY) == ["universal-prior"] * 2


@pytest.mark.whole_search
def test_early_turns_are_worth_more_than_space_filling_points() -> None:
    def best(n_startup_trials: int | None, seed: int) -> float:
        study = AskTell(PLANE, direction="maximize", seed=seed, n_startup_trials=n_startup_trials)
        return max(trial.value for trial in told(study, 10, sphere).trials)

    gains = [best(None, seed) - best(10, seed) for seed in range(8)]
    assert np.mean(gains) > 0.0 and np.median(gains) > 0.0


def test_the_prior_says_whether_there_are_turns() -> None:
    def made(prior) -> list[str]:
        return in_order(4, n_startup_trials=2, prior=prior)

    assert made("universal") == ["random"] * 2 + ["model", "universal-prior"]
    assert made(None) == ["random"] * 2 + ["model"] * 2
    with pytest.raises(ValueError, match=r"the spaces have no parameter in common"):
        made("xgboost")
