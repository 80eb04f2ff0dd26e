"""Candidates move along the gradient of the acquisition, where they may."""

import numpy as np

from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.search import along_gradient
from dre_plugins.space import Categorical, Condition, Float, Integer, SearchSpace

SPACE = SearchSpace(
    {
        "kind": Categorical(("a", "b")),
        "x": Float(-1.0, 3.0),
        "n": Integer(1, 9),
        "y": Float(1e-4, 1.0, scale="log"),
        "z": Float(0.0, 1.0),
    },
    [Condition("z", "kind", ("b",))],
)
FREE = np.full(5, np.nan)
PEAK = np.array([0.2, 0.7, 0.9])


def of_continuous(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what is best where x, y and z, as features, are at the peak; its derivatives."""
    places, derivatives = [*SPACE.continuous.values()], np.ones_like(features)
    distance = features[:, places] - PEAK
    derivatives[:, places] = -2.0 * distance
    return -np.square(distance).sum(-1), derivatives


def test_continuous_parameters_read_their_coordinate() -> None:
    assert [SPACE.names[column] for column in SPACE.continuous] == ["x", "y", "z"]
    units = np.random.default_rng(0).random((20, 5))
    features = SPACE.features(units)
    for column, place in SPACE.continuous.items():
        np.testing.assert_allclose(features[:, place], units[:, column], atol=1e-6)


def test_they_reach_the_peak_and_nothing_else_moves() -> None:
    units = np.random.default_rng(1).random((2, 5))
    units[:, 0] = 0.75  # "b", which has a z
    moved = along_gradient(SPACE, units, FREE, of_continuous)
    np.testing.assert_allclose(moved[:, [1, 3, 4]], [PEAK, PEAK], atol=1e-4)
    np.testing.assert_array_equal(moved[:, [0, 2]], units[:, [0, 2]])


def test_inactive_and_given_parameters_stay() -> None:
    units = np.random.default_rng(2).random((2, 5))
    units[:, 0] = 0.25  # "a", which has no z
    fixed = FREE.copy()
    fixed[1] = units[0, 1]
    moved = along_gradient(SPACE, units, fixed, of_continuous)
    np.testing.assert_array_equal(moved[:, [0, 1, 2, 4]], units[:, [0, 1, 2, 4]])
    np.testing.assert_allclose(moved[:, 3], 0.7, atol=1e-4)


def test_where_features_span_more_than_the_range_they_move_within_it() -> None:
    space = SearchSpace(SPACE.domains, SPACE.conditions, spans={"x": (-2.0, 2.0)})
    units = np.random.default_rng(1).random((2, 5))
    moved = along_gradient(space, units, FREE, of_continuous)
    np.testing.assert_allclose(moved[:, [1, 3]], [[0.0, 0.7]] * 2, atol=1e-4)


def test_a_peak_beyond_the_bounds_is_a_bound() -> None:
    units = np.random.default_rng(3).random((1, 5))
    place = SPACE.continuous[1]
    rising = np.eye(SPACE.n_features)[[place]]
    moved = along_gradient(SPACE, units, FREE, lambda features: (features[:, place], rising))
    assert moved[0, 1] == 1.0
    # A space of bins is left alone.
    bins = SearchSpace({"n": Integer(1, 9), "kind": Categorical(("a", "b"))})
    units = np.random.default_rng(4).random((2, 2))
    assert along_gradient(bins, units, FREE[:2], of_continuous) is units


def test_the_universal_prior_expects_more_of_refined_candidates(monkeypatch) -> None:
    gains = []

    def noting(space, units, fixed, acquisition):
        moved = along_gradient(space, units, fixed, acquisition)
        before, after = (
            acquisition(space.features(rows).astype(float))[0] for rows in (units, moved)
        )
        gains.extend((after - before).tolist())
        return moved

    monkeypatch.setattr("dre_plugins.recommend.proposers.universal.along_gradient", noting)
    space = SearchSpace({f"x{i}": Float(-5.0, 5.0) for i in range(7)})
    for seed in range(4):
        rows = np.random.default_rng(seed).random((24, 7)) * 10.0 - 5.0
        trials = [
            Trial(dict(zip(space.names, row, strict=True)), TrialState.COMPLETE, -(row @ row))
            for row in rows
        ]
        recommender = Recommender(space, RecommenderSettings(n_startup_trials=5), seed=0)
        for index in (25, 27, 29):
            assert recommender.suggest(trials, index=index)[0].source == "universal-prior"
    assert len(gains) == 24 and min(gains) > -1e-6 and np.mean(gains) > 0.05
