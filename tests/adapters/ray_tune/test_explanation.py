"""What `DRESearch` says of where its configurations come from."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray_tune_worker import result, tiny_search

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend.explanation import Explanation

SPACE = {"x": tune.uniform(0.0, 1.0), "y": tune.uniform(0.0, 1.0)}
search_of = partial(tiny_search, SPACE, metric="loss", mode="min")


def run(search: Any, n: int) -> list[str]:
    """Run trials as Ray does, and return their ids."""
    ids = [f"t{number:05d}" for number in range(n)]
    for trial_id in ids:
        config = search.suggest(trial_id)
        search.on_trial_complete(trial_id=trial_id, result={"loss": config["x"] + config["y"]})
    return ids


def test_a_search_that_was_restored_says_the_same(tmp_path: Path) -> None:
    search = search_of()
    ids = run(search, 6)
    search.suggest("running")
    search.save_to_dir(str(tmp_path))
    restored = DRESearch()
    restored.restore_from_dir(str(tmp_path))
    for trial_id in [*ids, "running"]:
        assert restored.explain(trial_id) == search.explain(trial_id)
    # It began after the state was saved.
    config = {"x": 0.5, "y": 0.25}
    restored.on_trial_result(trial_id="later", result=result(1.0, config=config))
    restored.on_trial_result(trial_id="foreign", result=result(1.0, config={"z": 1}))
    assert restored.explain("later") == restored.explain("foreign") == Explanation("unknown")
    assert restored.explain(ids[5]).source == "model"


def test_no_such_trial() -> None:
    search = search_of()
    run(search, 1)
    for wrong in ("t00001", ["t00000"]):
        with pytest.raises(ValueError, match="trial_id must be that of a trial of this search"):
            search.explain(wrong)
    with pytest.raises(ValueError, match=r"has not begun here.*restore_from_dir"):
        _ = DRESearch().study
