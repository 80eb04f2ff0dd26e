"""A network of PyTorch as scripts have it: equal hidden layers, an optimizer, dropout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from dre_bench.learner_evaluations.parameters import Value
from dre_bench.learner_evaluations.rungs import rungs_of
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, network

SEED = 0
ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "tanh": nn.Tanh,
}
OPTIMIZERS: Mapping[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


class TorchNetwork:
    """A network that is trained for all epochs and keeps its weights at each rung.

    Args:
        configuration: Values of the parameters of `spaces.network`.
        task: `classification` or `regression`.
    """

    def __init__(self, configuration: Mapping[str, Value], task: str) -> None:
        self.configuration = dict(configuration)
        self.classify = task == CLASSIFICATION
        self._module = nn.Sequential()
        self._weights: dict[int, dict[str, torch.Tensor]] = {}

    def fit(self, inputs: np.ndarray, target: np.ndarray) -> TorchNetwork:
        """Train on inputs `[N, Q]` and classes or numbers `[N]`."""
        torch.set_num_threads(1)
        # Layers draw from the global generator; a worker process has nothing else to draw.
        torch.manual_seed(SEED)  # noqa: TID251
        features = torch.tensor(inputs, dtype=torch.float32)
        wanted = torch.tensor(target, dtype=torch.int64 if self.classify else torch.float32)
        n_outputs = int(wanted.max()) + 1 if self.classify else 1
        self._module = nn.Sequential(*self._layers(features.shape[1], n_outputs))
        optimizer = self._optimizer()
        loss = nn.CrossEntropyLoss() if self.classify else nn.MSELoss()
        batch_size, epochs = (int(self.configuration[name]) for name in ("batch_size", "epochs"))
        kept = set(rungs_of(epochs))
        for epoch in range(1, epochs + 1):
            for rows in torch.randperm(len(features)).split(batch_size):
                optimizer.zero_grad()
                found = self._module(features[rows])
                loss(found if self.classify else found[:, 0], wanted[rows]).backward()
                optimizer.step()
            if epoch in kept:
                weights = self._module.state_dict()
                self._weights[epoch] = {name: weights[name].clone() for name in weights}
        return self

    def predict_after(self, inputs: np.ndarray, epoch: int) -> np.ndarray:
        """Predict probabilities `[M, K]` or numbers `[M]` with the weights of a rung."""
        self._module.load_state_dict(self._weights[epoch])
        self._module.eval()
        with torch.inference_mode():
            found = self._module(torch.tensor(inputs, dtype=torch.float32))
            return np.asarray(found.softmax(dim=1) if self.classify else found[:, 0])

    def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
        """Predict probabilities `[M, K]` after all epochs."""
        return self.predict_after(inputs, int(self.configuration["epochs"]))

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Predict numbers `[M]` after all epochs."""
        return self.predict_after(inputs, int(self.configuration["epochs"]))

    def _layers(self, n_inputs: int, n_outputs: int) -> Iterator[nn.Module]:
        chosen = self.configuration
        width = int(chosen["width"])
        for _ in range(int(chosen["n_layers"])):
            yield nn.Linear(n_inputs, width)
            yield ACTIVATIONS[str(chosen["activation"])]()
            yield nn.Dropout(float(chosen["dropout"]))
            n_inputs = width
        yield nn.Linear(n_inputs, n_outputs)

    def _optimizer(self) -> torch.optim.Optimizer:
        chosen = self.configuration
        momentum = {"momentum": float(chosen["momentum"])} if "momentum" in chosen else {}
        kind: Any = OPTIMIZERS[str(chosen["optimizer"])]
        return kind(
            self._module.parameters(),
            lr=float(chosen["learning_rate"]),
            weight_decay=float(chosen["weight_decay"]),
            **momentum,
        )


def torch_network(configuration: Mapping[str, Value] | None, task: str) -> TorchNetwork:
    """Make a network; PyTorch has no default one, so that the space says what it is."""
    if configuration is None:
        parameters = network(task)
        configuration = {p.name: p.default for p in parameters if p.default is not None}
    return TorchNetwork(configuration, task)
