"""Start from a prior that ships: XGBoost on a data set that comes with scikit-learn.

The prior "xgboost" was meta-trained on 95 other data sets. It knows XGBoost's own names. This
study has fewer parameters, with the names of the scikit-learn interface; the prior matches them.

    python examples/shipped_prior.py [--trials 12] [--seeds 6]
"""

import argparse
import sys
import warnings

import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dre_plugins import DRESampler, Prior

try:
    from xgboost import XGBClassifier
except ImportError:
    print("This example tunes XGBoost: pip install xgboost (or xgboost-cpu)")
    sys.exit(0)

X, Y = load_digits(return_X_y=True)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(X, Y, train_size=300, random_state=0)


def objective(trial: optuna.Trial) -> float:
    """Return the accuracy on held-out digits of a model trained on 300 of them."""
    model = XGBClassifier(
        n_estimators=trial.suggest_int("n_estimators", 7, 100, log=True),
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 1.0, log=True),
        max_depth=trial.suggest_int("max_depth", 1, 12),
        min_child_weight=trial.suggest_float("min_child_weight", 1.0, 100.0, log=True),
        subsample=trial.suggest_float("subsample", 0.1, 1.0),
        colsample_bytree=trial.suggest_float("colsample_bytree", 0.01, 1.0),
        reg_lambda=trial.suggest_float("reg_lambda", 1e-3, 1e3, log=True),
        reg_alpha=trial.suggest_float("reg_alpha", 1e-3, 1e3, log=True),
        n_jobs=1,
    )
    return model.fit(X_TRAIN, Y_TRAIN).score(X_TEST, Y_TEST)


def main() -> None:
    """Compare the prior with the default, which recognises XGBoost, no prior, TPE and GP."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)

    card = Prior.load("xgboost").card
    print(f"prior {card.name!r}: {card.description}, {len(card.tasks)} tasks, {card.licence}")
    samplers = {
        "prior": lambda seed: DRESampler(seed=seed, prior="xgboost"),
        "default": lambda seed: DRESampler(seed=seed),
        "no prior": lambda seed: DRESampler(seed=seed, prior="universal"),
        "TPESampler": lambda seed: optuna.samplers.TPESampler(seed=seed),
        "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
    }
    shown = [n for n in (1, 2, 3, 5, 8, 12, 20) if n <= options.trials]
    print(f"\nbest accuracy on digits, mean of {options.seeds} seeds, after trial")
    print(f"{'':12}" + "".join(f"{n:>7}" for n in shown))
    for name, sampler_of in samplers.items():
        curves = []
        for seed in range(options.seeds):
            study = optuna.create_study(direction="maximize", sampler=sampler_of(seed))
            study.optimize(objective, n_trials=options.trials)
            curves.append(np.maximum.accumulate([trial.value for trial in study.trials]))
        mean = np.mean(curves, axis=0)
        print(f"{name:12}" + "".join(f"{mean[n - 1]:>7.3f}" for n in shown), flush=True)


if __name__ == "__main__":
    main()
