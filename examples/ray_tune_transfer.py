"""Ray Tune learns from the results of past experiments."""

import tempfile

import ray
from ray import tune
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dre_plugins import DRESearch

SPACE = {"C": tune.loguniform(1e-3, 1e3), "gamma": tune.loguniform(1e-5, 1e2)}
STORAGE = tempfile.mkdtemp()


def tune_on(dataset: str, num_samples: int, **options) -> tune.ResultGrid:
    """Tune a support vector machine on a data set that comes with scikit-learn."""

    def train(config: dict) -> dict:
        x, y = getattr(datasets, f"load_{dataset}")(return_X_y=True)
        model = make_pipeline(StandardScaler(), SVC(**config))
        return {"accuracy": cross_val_score(model, x[:300], y[:300], cv=3).mean()}

    search = DRESearch(seed=0, metric="accuracy", mode="max", **options)
    config = tune.TuneConfig(search_alg=search, num_samples=num_samples, reuse_actors=True)
    run = tune.RunConfig(storage_path=STORAGE, name=dataset, verbose=0)
    return tune.Tuner(train, param_space=SPACE, tune_config=config, run_config=run).fit()


ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
past = [tune_on(dataset, num_samples=12) for dataset in ("iris", "wine", "breast_cancer")]
# A folder of experiments works as well: past_results=[STORAGE].
ways = {"from nothing": {"prior": "universal"}, "with the past": {"past_results": past}}
for name, options in ways.items():
    results = tune_on("digits", num_samples=4, **options)
    accuracies = [f"{result.metrics['accuracy']:.3f}" for result in results]
    print(f"accuracy on digits {name}: {', '.join(accuracies)}")
