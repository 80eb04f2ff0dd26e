"""Two studies in two frameworks: a study of Syne Tune starts from one of Optuna.

A support vector machine is tuned on one data set with Optuna, then on another one with Syne Tune,
with the memory of the first study and without. Both curves are drawn.

    python examples/memory.py [--trials 25] [--picture memory.png]
"""

import argparse
import tempfile

import matplotlib
import numpy as np
import optuna
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from syne_tune.config_space import loguniform
from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler

from dre_plugins import DRE, DRESampler

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def accuracy(dataset: str, config: dict) -> float:
    """Return the cross-validated accuracy of a support vector machine."""
    x, y = getattr(datasets, f"load_{dataset}")(return_X_y=True)
    return cross_val_score(SVC(**config), x[:300], y[:300], cv=3).mean()


def with_optuna(dataset: str, n_trials: int, memory: str) -> list[float]:
    """Tune with Optuna and return the values of the trials."""

    def objective(trial: optuna.Trial) -> float:
        c = trial.suggest_float("C", 1e-3, 1e3, log=True)
        gamma = trial.suggest_float("gamma", 1e-8, 1e1, log=True)
        return accuracy(dataset, {"C": c, "gamma": gamma})

    study = optuna.create_study(
        study_name=dataset, direction="maximize", sampler=DRESampler(seed=0, memory=memory)
    )
    study.optimize(objective, n_trials=n_trials)
    return [trial.value for trial in study.trials]


def with_syne_tune(dataset: str, n_trials: int, memory: str | bool) -> list[float]:
    """Tune with Syne Tune and return the values of the trials."""
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-8, 1e1)}
    options = {"prior": "universal", "memory": memory}  # without the portfolio of the learner
    scheduler = DRE(space, "accuracy", do_minimize=False, random_seed=0, **options)
    loop, values = AskTellScheduler(scheduler), []
    for _ in range(n_trials):
        trial = loop.ask()
        values.append(accuracy(dataset, trial.config))
        loop.tell(trial, {"accuracy": values[-1]})
    return values


def main() -> None:
    """Run the studies and draw what they have reached."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--picture", default="memory.png")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as memory:
        with_optuna("breast_cancer", options.trials, memory)
        curves = {
            "with the memory of Optuna's study": with_syne_tune("digits", options.trials, memory),
            "without": with_syne_tune("digits", options.trials, False),
        }
    for name, values in curves.items():
        best = np.maximum.accumulate(values)
        plt.plot(range(1, len(best) + 1), best, label=name)
        after = ", ".join(f"{best[n - 1]:.3f} after {n}" for n in (1, 5, 10) if n <= len(best))
        print(f"accuracy on digits {name}: {after}")
    plt.xlabel("trial of Syne Tune's study on digits")
    plt.ylabel("best accuracy")
    plt.legend()
    plt.savefig(options.picture, dpi=120)


if __name__ == "__main__":
    main()
