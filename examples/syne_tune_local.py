"""Syne Tune with ASHA on this machine: this file is the experiment and its training script."""

import sys
from argparse import ArgumentParser

from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

if len(sys.argv) > 1:  # a trial: Syne Tune calls with one argument for each parameter
    from syne_tune import Reporter

    parser = ArgumentParser()
    for name, kind in {"alpha": float, "eta0": float, "loss": str, "epochs": int}.items():
        parser.add_argument(f"--{name}", type=kind)
    config, _ = parser.parse_known_args()
    x, x_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    given = {"alpha": config.alpha, "eta0": config.eta0, "loss": config.loss}
    model = SGDClassifier(learning_rate="adaptive", **given)
    for epoch in range(config.epochs):
        model.partial_fit(x / 16, y, classes=range(10))
        Reporter()(epoch=epoch + 1, accuracy=model.score(x_test / 16, y_test))
else:
    from syne_tune import StoppingCriterion, Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import choice, loguniform

    from dre_plugins import ASHADRE

    space = {"alpha": loguniform(1e-7, 1e-1), "eta0": loguniform(1e-4, 1e1), "epochs": 9}
    space["loss"] = choice(["hinge", "log_loss", "modified_huber"])
    scheduler = ASHADRE(space, "accuracy", "epoch", max_t=9, do_minimize=False, random_seed=0)
    stop = StoppingCriterion(max_num_trials_finished=12)
    tuner = Tuner(
        LocalBackend(__file__, rotate_gpus=False), scheduler, stop, n_workers=2, sleep_time=0.1
    )
    tuner.run()
    print("best trial and configuration:", tuner.best_config())
