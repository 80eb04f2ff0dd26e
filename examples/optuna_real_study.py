"""A real study: two objectives, a constraint, trials that fail, and a belief about good values."""

import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from dre_plugins import DRESampler, Prior
from dre_plugins.space import Integer

N_TRIALS = 30
MAX_LEAVES = 150
X, X_TEST, Y, Y_TEST = train_test_split(*load_digits(return_X_y=True), random_state=0)


def objective(trial: optuna.Trial) -> tuple[float, float]:
    depth = trial.suggest_int("max_depth", 1, 30)
    features = trial.suggest_int("max_features", 1, 64)
    smallest = trial.suggest_int("min_samples_leaf", 1, 50, log=True)
    if depth > 20 and features > 40:
        raise MemoryError("simulated")  # such trials fail, and the search learns to avoid them
    tree = DecisionTreeClassifier(
        max_depth=depth, max_features=features, min_samples_leaf=smallest, random_state=0
    ).fit(X, Y)
    trial.set_constraint("leaves", tree.get_n_leaves() - MAX_LEAVES)  # at most 0 is met; Optuna 5
    return tree.score(X_TEST, Y_TEST), features


# Deep trees are expected to be accurate; nothing is known of the number of features.
accurate = Prior.of_beliefs({"max_depth": Integer(1, 30)}, [{"max_depth": 15}])
optuna.logging.set_verbosity(optuna.logging.ERROR)
for name, sampler in {
    "TPE": optuna.samplers.TPESampler(seed=0),
    "DRE": DRESampler(seed=0, prior=[accurate, None]),
}.items():
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=N_TRIALS, catch=MemoryError)
    front = sorted(trial.values for trial in study.best_trials)
    failed = sum(trial.state is optuna.trial.TrialState.FAIL for trial in study.trials)
    print(f"{name}: failed trials: {failed}; accuracy with so many features:")
    print("  ", ", ".join(f"{accuracy:.3f} with {n:.0f}" for accuracy, n in front))
