"""Tune networks with Ray Tune, and stop poor ones early with ASHA."""

import tempfile

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from dre_plugins import DRESearch

RATE = tune.loguniform(1e-5, 1e0)
OPTIMIZERS = [  # momentum exists in one branch only
    {"solver": "adam", "learning_rate_init": RATE},
    {"solver": "sgd", "learning_rate_init": RATE, "momentum": tune.uniform(0.0, 0.99)},
]
SPACE = {"width": tune.lograndint(8, 256), "optimizer": tune.choice(OPTIMIZERS)}


def train(config: dict) -> None:
    """Report the accuracy on held-out digits after every epoch."""
    x, x_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = MLPClassifier((config["width"],), **config["optimizer"])
    for _ in range(27):
        model.partial_fit(x, y, classes=range(10))
        tune.report({"accuracy": model.score(x_test, y_test)})


ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
config = tune.TuneConfig(metric="accuracy", mode="max", num_samples=24, reuse_actors=True)
config.search_alg = DRESearch(seed=0)
config.scheduler = ASHAScheduler(max_t=27, grace_period=1, reduction_factor=3)
run = tune.RunConfig(storage_path=tempfile.mkdtemp(), verbose=0)
results = tune.Tuner(train, param_space=SPACE, tune_config=config, run_config=run).fit()
best = results.get_best_result()
epochs = sum(result.metrics["training_iteration"] for result in results)
print(f"{len(results)} trials, {epochs} epochs instead of {27 * len(results)}")
print(f"best accuracy {best.metrics['accuracy']:.3f} with {best.config}")
