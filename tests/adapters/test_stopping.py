"""A study ends when the next trials are expected to gain too little, in every framework."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")
tune = pytest.importorskip("ray.tune")
config_space = pytest.importorskip("syne_tune.config_space")

from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule  # noqa: E402

from dre_plugins.adapters.optuna import DRESampler, ExpectedGainCallback  # noqa: E402
from dre_plugins.adapters.ray_tune import DRESearch, ExpectedGainStopper  # noqa: E402
from dre_plugins.adapters.syne_tune import DRE, MODRE, ExpectedGainCriterion  # noqa: E402

SPACE = {"x": config_space.uniform(-5.0, 5.0), "y": config_space.uniform(-5.0, 5.0)}
# Trials of a space-filling sampler, the best of which is far from the optimum.
N = 14
HIGH, LOW = 1e6, 1e-6


def loss(config):
    return config["x"] ** 2 + config["y"] ** 2


def asked(trial):
    return {name: trial.suggest_float(name, -5.0, 5.0) for name in SPACE}


@pytest.mark.parametrize(("min_gain", "n_run"), [(HIGH, 10), (LOW, N)])
def test_optuna_stops_a_study_of_any_sampler(min_gain, n_run):
    callback = ExpectedGainCallback(min_gain=min_gain, min_n_trials=10)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: loss(asked(trial)), n_trials=N, callbacks=[callback])
    assert len(study.trials) == n_run


@pytest.mark.parametrize("value_of", [lambda number: 0.0, lambda number: 0.3 + number % 2 * 1e-17])
def test_a_study_whose_values_are_all_equal_is_stopped(value_of):
    """Up to rounding errors; other trials may have failed."""
    callback = ExpectedGainCallback(min_n_trials=12)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial):
        asked(trial)
        return float("nan") if trial.number == 3 else value_of(trial.number)

    study.optimize(objective, n_trials=20, callbacks=[callback])
    assert [trial.state.name for trial in study.trials].count("COMPLETE") == 12


@pytest.mark.parametrize("valid", [None, lambda c: c["x"] >= 4.0])
def test_optuna_stops_where_only_what_breaks_the_rule_is_better(valid):
    study = optuna.create_study(sampler=DRESampler(seed=0, valid=valid, n_startup_trials=20))
    study.enqueue_trial({"x": 4.0, "y": 0.0})
    for x, y in np.random.default_rng(0).uniform((4.0, -5.0), 5.0, (19, 2)):
        study.enqueue_trial({"x": x, "y": y})
    callback = ExpectedGainCallback(min_gain=1.0)
    study.optimize(lambda trial: loss(asked(trial)), n_trials=21, callbacks=[callback])
    assert (len(study.trials) == 20) == (valid is not None)


@pytest.mark.parametrize(("min_gain", "n_run"), [(HIGH, 10), (LOW, N)])
def test_ray_tune_stops_after_the_trial_that_settles_it(min_gain, n_run, tmp_path):
    space = {name: tune.uniform(-5.0, 5.0) for name in SPACE}
    search = DRESearch(space, metric="loss", mode="min", seed=0, n_startup_trials=N)
    stopper = ExpectedGainStopper(search, min_gain=min_gain, min_n_trials=10)
    for number in range(N):
        if number == 5:  # `Tuner.restore` restores the search and a copy of the stopper
            search.save_to_dir(str(tmp_path))
            stopper, search = pickle.loads(pickle.dumps(stopper)), DRESearch()
            search.restore_from_dir(str(tmp_path))
        assert not stopper.stop_all()
        config = search.suggest(str(number))
        result = {"loss": loss(config), "training_iteration": 1}
        assert not stopper(str(number), result)
        search.on_trial_complete(str(number), result)
        if stopper.stop_all():
            break
    assert number + 1 == n_run


@pytest.mark.parametrize(("min_gain", "n_run"), [(HIGH, 10), (LOW, N)])
def test_syne_tune_stops_after_the_trial_that_settles_it(min_gain, n_run):
    scheduler = DRE(SPACE, "loss", random_seed=0, n_startup_trials=N)
    wrapped = MedianStoppingRule(scheduler, time_attr="epoch", random_seed=0)
    tuned = scheduler if min_gain == LOW else wrapped  # what the tuner has
    criterion = ExpectedGainCriterion(tuned, min_gain=min_gain, min_n_trials=10)
    for number in range(N):
        assert not criterion(SimpleNamespace())
        config = scheduler.suggest().config
        trial = SimpleNamespace(trial_id=number, config=config)
        scheduler.on_trial_add(trial)
        scheduler.on_trial_complete(trial, {"loss": loss(config)})
        if criterion(SimpleNamespace()):
            break
    assert number + 1 == n_run


def test_what_knows_no_trials_or_several_objectives_is_refused():
    with pytest.raises(ValueError, match="search must be the DRESearch of the Tuner, got None"):
        ExpectedGainStopper(None)
    with pytest.raises(ValueError, match="scheduler must have a DRESearcher, got None"):
        ExpectedGainCriterion(None)
    scheduler = MODRE(SPACE, ["loss", "size"], random_seed=0)
    trial = SimpleNamespace(trial_id=0, config=scheduler.suggest().config)
    scheduler.on_trial_add(trial)
    scheduler.on_trial_complete(trial, {"loss": 1.0, "size": 1.0})
    with pytest.raises(ValueError, match="number of objectives must be 1, got 2"):
        ExpectedGainCriterion(scheduler)(SimpleNamespace())
    study = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="number of objectives must be 1, got 2"):
        study.optimize(lambda trial: (0.0, 0.0), 1, callbacks=[ExpectedGainCallback()])
