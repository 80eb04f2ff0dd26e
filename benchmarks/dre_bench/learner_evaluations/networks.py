"""Scikit-learn's multilayer perceptron, trained for a fixed number of epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from dre_bench.learner_evaluations.parameters import Value
from dre_bench.learner_evaluations.rungs import rungs_of
from dre_bench.learner_evaluations.spaces import CLASSIFICATION

SEED = 0


class EpochNetwork:
    """A perceptron without early stopping that keeps its weights at each rung."""

    def __init__(self, perceptron: Any, epochs: int, classify: bool) -> None:
        self.perceptron = perceptron
        self.epochs = epochs
        self.classify = classify
        self._weights: dict[int, tuple[list[np.ndarray], list[np.ndarray]]] = {}

    def fit(self, inputs: np.ndarray, target: np.ndarray) -> EpochNetwork:
        """Train for all epochs."""
        kept = set(rungs_of(self.epochs))
        classes = {"classes": np.unique(target)} if self.classify else {}
        for epoch in range(1, self.epochs + 1):
            self.perceptron.partial_fit(inputs, target, **(classes if epoch == 1 else {}))
            if epoch in kept:
                self._weights[epoch] = (
                    [weights.copy() for weights in self.perceptron.coefs_],
                    [weights.copy() for weights in self.perceptron.intercepts_],
                )
        return self

    def predict_after(self, inputs: np.ndarray, epoch: int) -> np.ndarray:
        """Predict probabilities `[M, K]` or numbers `[M]` with the weights of a rung."""
        self.perceptron.coefs_, self.perceptron.intercepts_ = self._weights[epoch]
        if self.classify:
            return np.asarray(self.perceptron.predict_proba(inputs))
        return np.asarray(self.perceptron.predict(inputs))

    def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
        """Predict probabilities `[M, K]` after all epochs."""
        return self.predict_after(inputs, self.epochs)

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Predict numbers `[M]` after all epochs."""
        return self.predict_after(inputs, self.epochs)


def network(configuration: Mapping[str, Value] | None, task: str) -> Any:
    """Make a perceptron; the library's default is trained by its own `fit`, which stops early."""
    classify = task == CLASSIFICATION
    kind = MLPClassifier if classify else MLPRegressor
    if configuration is None:
        return kind(random_state=SEED)
    arguments: dict[str, Any] = dict(configuration)
    epochs = int(arguments.pop("epochs"))
    layers = (int(arguments.pop("width")),) * int(arguments.pop("n_layers"))
    return EpochNetwork(
        kind(hidden_layer_sizes=layers, random_state=SEED, **arguments), epochs, classify
    )
