import numpy as np
import pytest
from small_spaces import told
from spies import spy

from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.space import Categorical
from dre_plugins.study import AskTell


def features(n: int, n_features: int) -> np.ndarray:
    return np.random.default_rng(0).random((n, n_features)).astype(np.float32)


@pytest.mark.parametrize("n_features", [MAX_FEATURES + 1, 4 * MAX_FEATURES, 3000])
def test_sketches_vary_like_features_and_keep_distances(n_features) -> None:
    wide = features(200, n_features)
    narrow = sketched(wide)
    assert narrow.shape == (200, MAX_FEATURES) and narrow.dtype == np.float32
    assert np.array_equal(narrow, sketched(wide))
    share = len(wide[0]) / (MAX_FEATURES * -(-n_features // MAX_FEATURES))
    assert np.isclose(narrow.std(), np.sqrt(share) * wide.std(), rtol=0.1)
    far, near = wide.copy(), wide.copy()
    far[:, : n_features // 2] = 1.0 - far[:, : n_features // 2]
    near[:, 0] = 1.0 - near[:, 0]
    moved = [np.linalg.norm(sketched(points) - narrow, axis=1).mean() for points in (far, near)]
    assert moved[0] > 3 * moved[1] > 0
    few = wide[:, :MAX_FEATURES]
    assert sketched(few) is few


def test_a_wide_space_is_searched_by_narrow_members(monkeypatch) -> None:
    fit = spy(monkeypatch, DeepRankingEnsemble, "fit")
    space = {f"x{i}": Categorical(tuple("abcdefghij")) for i in range(40)}
    study = AskTell(space, direction="maximize", seed=0, n_startup_trials=4)
    told(study, 8, lambda c: sum(value == "a" for value in c.values()))
    fits = [call.args[:2] for call in fit.call_args_list]
    widths = {(ensemble.n_features, lists.features.shape[-1]) for ensemble, lists in fits}
    assert widths == {(MAX_FEATURES, MAX_FEATURES)}
    assert study.stats["fallbacks"] == 0 and study.stats["universal-prior"] > 0
