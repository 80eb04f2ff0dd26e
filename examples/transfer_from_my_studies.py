"""Learn from five past studies with `past_studies=`.

A support vector machine was tuned on five data sets, each in a study of its own. A sixth study
learns from them and is compared with the same sampler without them, and with
TPESampler.

    python examples/transfer_from_my_studies.py [--trials 15] [--seeds 3]
"""

import argparse
import warnings

import numpy as np
import optuna
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dre_plugins import DRESampler

PAST = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "moons": make_moons(300, noise=0.3, random_state=0),
    "clusters": make_classification(300, 20, n_informative=5, random_state=0),
}
N_ROWS = 300


def objective_of(data):
    """Return the cross-validated accuracy of a support vector machine on a data set."""
    x, y = (part[:N_ROWS] for part in data)

    def objective(trial: optuna.Trial) -> float:
        kernel = trial.suggest_categorical("kernel", ["rbf", "poly", "sigmoid"])
        model = SVC(
            C=trial.suggest_float("C", 1e-3, 1e3, log=True),
            gamma=trial.suggest_float("gamma", 1e-5, 1e2, log=True),
            kernel=kernel,
            degree=trial.suggest_int("degree", 2, 5) if kernel == "poly" else 3,
            max_iter=1000,  # some settings would never end
        )
        return cross_val_score(make_pipeline(StandardScaler(), model), x, y, cv=3).mean()

    return objective


def best_so_far(sampler: optuna.samplers.BaseSampler, n_trials: int) -> np.ndarray:
    """Tune on the sixth data set and return the best accuracy after each trial."""
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective_of(load_digits(return_X_y=True)), n_trials=n_trials)
    return np.maximum.accumulate([trial.value for trial in study.trials])


def main() -> None:
    """Run the past studies, then the new one in three ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)

    past = []
    for seed, (name, data) in enumerate(PAST.items()):
        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(study_name=name, direction="maximize", sampler=sampler)
        study.optimize(objective_of(data), n_trials=40)
        print(f"past study {name!r}: best accuracy {study.best_value:.3f}, 40 trials")
        past.append(study)

    samplers = {
        "with past studies": lambda seed: DRESampler(seed=seed, past_studies=past),
        "without": lambda seed: DRESampler(seed=seed, prior="universal"),
        "TPESampler": lambda seed: optuna.samplers.TPESampler(seed=seed),
    }
    print(f"\nbest accuracy on digits, mean of {options.seeds} seeds, after trial")
    shown = [n for n in (1, 2, 3, 5, 10, 15) if n <= options.trials]
    print(f"{'':20}" + "".join(f"{n:>7}" for n in shown))
    for name, sampler_of in samplers.items():
        curves = [best_so_far(sampler_of(seed), options.trials) for seed in range(options.seeds)]
        mean = np.mean(curves, axis=0)
        print(f"{name:20}" + "".join(f"{mean[n - 1]:>7.3f}" for n in shown))


if __name__ == "__main__":
    main()
