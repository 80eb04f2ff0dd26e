"""Tune without a framework: ask for a configuration, tell its value.

python examples/ask_tell.py
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from dre_plugins import AskTell
from dre_plugins.space import Categorical, Integer

X, y = load_wine(return_X_y=True)
SCALERS = {"standard": StandardScaler(), "min-max": MinMaxScaler()}
SPACE = {
    "scaler": Categorical(("standard", "min-max")),
    "n_neighbors": Integer(1, 100, scale="log"),
    "weights": Categorical(("uniform", "distance")),
    "p": Integer(1, 5),
}

study = AskTell(SPACE, direction="maximize", seed=0)
for _ in range(30):
    number, configuration = study.ask()
    model = {name: value for name, value in configuration.items() if name != "scaler"}
    scaler = SCALERS[configuration["scaler"]]
    pipeline = make_pipeline(scaler, KNeighborsClassifier(**model))
    study.tell(number, cross_val_score(pipeline, X, y, cv=5).mean())

print(f"best accuracy {study.best.value:.4f} with {study.best.configuration}")

# Several workers: the configurations of a batch differ.
batch = study.ask_batch(4)
assert len({tuple(configuration.values()) for _, configuration in batch}) == 4
