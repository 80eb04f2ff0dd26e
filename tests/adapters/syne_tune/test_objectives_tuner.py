"""Several objectives through Syne Tune's own `Tuner`, with a driver that is killed."""

from pathlib import Path

import numpy as np
import pytest
from syne_tune import StoppingCriterion, Tuner, config_space as cs
from syne_tune.backend import PythonBackend
from syne_tune.results_callback import StoreResultsCallback
from syne_tune_loop import states
from syne_tune_rows import OPTIONS
from syne_tune_tuning import SaveOften, reap

from dre_plugins.adapters.syne_tune import MODRE, load_tuner
from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments
from dre_plugins.recommend import TrialState


def trained(x: float, epochs: int) -> None:
    """Train in a process of its own, which gets nothing but this function's body."""
    from syne_tune import Reporter

    report = Reporter()
    for epoch in range(1, epochs + 1):
        if x > 0.8 and epoch == 2:
            raise RuntimeError("diverged")
        report(epoch=epoch, accuracy=1.0 - x * x - 1.0 / epoch, size=abs(x - 0.5))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Syne Tune and pandas about themselves
def test_a_tuner_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path))
    space = {"x": cs.uniform(0.0, 1.0), "epochs": 2}
    points = [{"x": 0.9}, {"x": 0.125}, {"x": 0.25}]
    tuner = Tuner(
        trial_backend=PythonBackend(trained, space, rotate_gpus=False),
        scheduler=MODRE(
            space,
            ["accuracy", "size"],
            do_minimize=[False, True],
            points_to_evaluate=points,
            **OPTIONS,
        ),
        # Syne Tune stops after more than so many.
        stop_criterion=StoppingCriterion(max_num_trials_completed=5),
        n_workers=2,
        sleep_time=0.1,
        max_failures=9,
        tuner_name="objectives",
        suffix_tuner_name=False,
        callbacks=[SaveOften(), StoreResultsCallback()],
    )
    tuner.run()
    reap(tuner)
    trials = tuner.scheduler.searcher.trials
    assert trials[0].state is TrialState.FAILED
    ended = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    assert len(ended) >= 6
    for trial in ended:
        x = trial.configuration["x"]
        assert trial.objectives == pytest.approx((x * x - 0.5, abs(x - 0.5)))

    # What Syne Tune makes of modes that differ.
    tried = [trial.configuration["x"] for trial in ended]
    assert tuner.best_config("accuracy")[1]["x"] <= min(tried)
    assert abs(tuner.best_config("size")[1]["x"] - 0.5) <= min(abs(x - 0.5) for x in tried)
    (small,) = metadata_from_experiments(tmp_path / "objectives", metric="size")
    (large,) = metadata_from_experiments(tmp_path / "objectives", metric="accuracy")
    assert -0.25 <= np.nanmax(small.values) <= 0.0 < 0.48 < np.nanmax(large.values) <= 0.5

    # As if the driver had been killed in the middle.
    n_complete, content = next(saved for saved in SaveOften.saved if saved[0] >= 2)
    (tmp_path / "objectives" / "tuner.dill").write_bytes(content)
    scheduler = reap(load_tuner(tmp_path / "objectives")).scheduler
    lost = [trial for trial in scheduler.searcher.trials if trial.state is TrialState.RUNNING]
    assert states(scheduler).count("complete") == n_complete and lost
    for lost_trial in lost:
        assert scheduler.suggest().config == {**lost_trial.configuration, "epochs": 2}
