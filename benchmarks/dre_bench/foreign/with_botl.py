"""Transfer from past studies by Ax (Meta): its generator `BOTL`.

A Gaussian process of several tasks is fitted to all past studies and the present one at each step.
Search spaces may differ; a parameter of another name is told to be the same. It begins with the
centre of the space, as `BOTL` cannot do without a trial.

At its defaults a fit takes 26 s on one core for five past studies of 40 trials, in 4,577
evaluations of the likelihood: here it ends after 200 iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ax.adapter.transfer_learning.adapter import (
    TL_EXP,
    transfer_learning_generator_specs_constructor,
)
from ax.core.auxiliary_source import AuxiliarySource
from ax.generation_strategy.center_generation_node import CenterGenerationNode
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generators.torch.botorch_modular.utils import fit_botorch_model
from ax.service.ax_client import AxClient, ObjectiveProperties
from botorch.fit import fit_gpytorch_mll
from botorch.models.multitask import MultiTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

MAX_ITERATIONS = 200
DISTRIBUTIONS = ("ax-platform", "botorch", "torch")
VALUE = "value"


class Searcher:
    """Ask and tell `BOTL`; see the package.

    Args:
        parameters: The search space.
        seed: Seed of the generator.
        trials: How long the study will be.
        past: Of each past study its `parameters`, `configurations` and `values`, and in `names`
            its own name of each present parameter that it calls otherwise.
    """

    def __init__(
        self,
        parameters: list[dict[str, Any]],
        seed: int,
        trials: int,
        past: Sequence[Mapping[str, Any]],
    ) -> None:
        specs, _ = transfer_learning_generator_specs_constructor(use_model_selection=False)
        nodes = [CenterGenerationNode("transfer"), GenerationNode("transfer", specs)]
        strategy = GenerationStrategy(nodes=nodes)
        self._client = _client("present", parameters, seed, strategy)
        self._client.experiment.auxiliary_experiments_by_purpose[TL_EXP] = [
            _source(f"past{number}", study, seed) for number, study in enumerate(past)
        ]
        self._index = 0

    def ask(self, n: int) -> list[dict[str, Any]]:
        """Return the next configuration; only one is asked for at once."""
        configuration, self._index = self._client.get_next_trial()
        return [dict(configuration)]

    def tell(self, values: list[float]) -> None:
        """Take the value of the last configuration."""
        self._client.complete_trial(self._index, raw_data={VALUE: (values[0], None)})


def _fit(
    model: MultiTaskGP, mll_class: type[ExactMarginalLogLikelihood], mll_options: Any = None
) -> None:
    likelihood = mll_class(model.likelihood, model, **(mll_options or {}))
    fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": MAX_ITERATIONS}})


fit_botorch_model.register(MultiTaskGP)(_fit)


def _source(name: str, study: Mapping[str, Any], seed: int) -> AuxiliarySource:
    client = _client(name, study["parameters"], seed)
    for configuration, value in zip(study["configurations"], study["values"], strict=True):
        _, index = client.attach_trial(configuration)
        client.complete_trial(index, raw_data={VALUE: (value, None)})
    return AuxiliarySource(client.experiment, transfer_param_config=study["names"])


def _client(
    name: str,
    parameters: list[dict[str, Any]],
    seed: int,
    strategy: GenerationStrategy | None = None,
) -> AxClient:
    client = AxClient(strategy, random_seed=seed, verbose_logging=False)
    client.create_experiment(
        name=name,
        parameters=[_domain(**parameter) for parameter in parameters],
        objectives={VALUE: ObjectiveProperties(minimize=False)},
    )
    return client


def _domain(
    name: str, kind: str, low: float, high: float, log: bool, choices: list[str], **_: Any
) -> dict[str, Any]:
    if kind == "categorical":
        return {
            "name": name,
            "type": "choice",
            "values": choices,
            "value_type": "str",
            "is_ordered": False,
            "sort_values": False,
        }
    return {
        "name": name,
        "type": "range",
        "bounds": [low, high],
        "value_type": kind,
        "log_scale": log,
    }
