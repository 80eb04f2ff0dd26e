"""Trained priors on tables: each member reads the context of one past task.

Tasks are drawn with larger probability the better the scorers, in their context, order the
observed rows, and the more so the more rows there are. With few rows the tasks vary, so that the
members' disagreement expresses the uncertainty about the task. In a whole space such contexts
lead to corners that no member leaves (docs/decisions/table-contexts.md).

Notation: see docs/architecture.md; `T` contexts of past tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.scorers import context_vectors, score
from dre_plugins.engine.settings import FittingSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble, RankingLists
from dre_plugins.transfer.metadata import MetaDataset, with_parameters
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.task_lists import TaskLists

Contexts = NDArray[np.float32]

# Largest number of contexts: a suggestion scores the observed rows in each.
MAX_CONTEXTS = 128
# How much each observed row sharpens the weights of tasks: with a tenth more of all pairs in the
# wrong order, the weight is multiplied by exp(-SHARPNESS · N / 10).
SHARPNESS = 1.6
# Up to so many rows nothing is fine-tuned, then a share of the steps, and from so many on all.
FREE_LENGTH, FULL_LENGTH = 10, 40


def contexts_of(prior: Prior, past: MetaDataset) -> Contexts:
    """Return the contexts of a prior's training tasks `[T, Z]`, each from a random support set.

    Of many lists, evenly spaced ones are taken. Scorers that read no context have none `[0, 0]`.
    A ValueError says that there is nothing to learn from, or a task has no parameter of the prior.
    """
    ensemble, training = prior.ensemble, prior.card.training
    if ensemble.settings.context is None:
        return np.empty((0, 0), dtype=np.float32)
    rng = np.random.default_rng(training["seed"])
    lists = TaskLists.of(with_parameters(past).tasks, prior.space).spread(MAX_CONTEXTS)
    contexts = []
    with isolated("cpu", ensemble.n_threads), torch.no_grad():
        for row, length in enumerate(lists.lengths.tolist()):
            drawn = torch.from_numpy(rng.permutation(length)[: training["max_support"]])
            features, values = lists.features[row, drawn][None, None], lists.values[row, drawn]
            support = torch.ones_like(values, dtype=torch.bool)[None, None]
            quantiles = rank_normalised(values[None, None], support)
            activation = ensemble.settings.activation
            contexts.append(
                context_vectors(ensemble.parameters, features, quantiles, support, activation)[0]
            )
    return torch.cat(contexts).numpy()


def in_contexts(prior: Prior, contexts: Contexts) -> Prior:
    """Return the prior for tables, with members in contexts `[T, Z]` once a row is observed."""
    if not len(contexts):
        return prior
    ensemble = prior.ensemble
    parts = {part.name: getattr(ensemble, part.name) for part in fields(ensemble)}
    return replace(prior, ensemble=TableEnsemble(**parts, contexts=torch.from_numpy(contexts)))


@dataclass(frozen=True, kw_only=True)
class TableEnsemble(DeepRankingEnsemble):
    """Fit scorers of a prior in contexts of past tasks that resemble the observed rows.

    Args:
        contexts: Contexts of past tasks `[T, Z]`.
    """

    contexts: Tensor

    def fit(
        self, lists: RankingLists, fitting: FittingSettings, *, seed: int
    ) -> DeepRankingEnsemble:
        """Return an ensemble fitted with a past task for each member, drawn by the first list.

        Raises:
            FittingError: If the fit diverged.
        """
        is_real = lists.mask[0, 0]
        features, ranks = lists.features[0, 0][is_real], lists.values[0, 0][is_real]
        wrong = disagreement(self._scores_by_context(features), ranks)
        rng = np.random.default_rng(seed)
        drawn = draw_tasks(wrong, len(ranks), self.settings.n_members, rng)
        fixed = with_contexts(self, self.contexts[drawn])
        return fixed.fit(lists, delayed(fitting, len(ranks)), seed=seed)

    def _scores_by_context(self, features: Tensor) -> Tensor:
        """Score configurations `[C, D]` under each context: `[T, C]`, mean of members."""
        repeated = features.to(self.device).expand(1, len(self.contexts), -1, -1)
        contexts = self.contexts.to(self.device)[None]
        with torch.no_grad():
            return score(self.parameters, self.settings, repeated, contexts).mean(0).cpu()


def with_contexts(ensemble: DeepRankingEnsemble, contexts: Tensor) -> DeepRankingEnsemble:
    """Return an ensemble whose members have fixed contexts `[M, Z]`, as part of their biases."""
    fixed = {
        name: value for name, value in ensemble.parameters.items() if name.startswith("scorer.")
    }
    weight, of_context = fixed["scorer.0.weight"].tensor_split([ensemble.n_features], dim=1)
    shift = torch.bmm(contexts.to(ensemble.device)[:, None], of_context)
    fixed["scorer.0.weight"] = weight.contiguous()
    fixed["scorer.0.bias"] = fixed["scorer.0.bias"] + shift
    settings = replace(ensemble.settings, context=None)
    return DeepRankingEnsemble(settings, ensemble.n_features, fixed, n_threads=ensemble.n_threads)


def delayed(fitting: FittingSettings, n_trials: int) -> FittingSettings:
    """Return how to fine-tune in contexts, which begins later than in the study's own context.

    Presets that always take all steps, such as "paper", do so here.
    """
    if fitting.full_length == 1:
        return fitting
    share = (n_trials - FREE_LENGTH) / (FULL_LENGTH - FREE_LENGTH)
    n_steps = math.ceil(fitting.n_steps * min(max(share, 0.0), 1.0))
    return replace(fitting, n_steps=n_steps, full_length=1)


def disagreement(scores: Tensor, ranks: Tensor) -> Tensor:
    """Return the share of pairs of rows that each task's scores order wrongly `[T]`.

    Scores under each context `[T, N]` and observed ranks `[N]` are larger is better.
    """
    is_better = ranks[:, None] > ranks[None, :]
    is_wrong = is_better & (scores[:, :, None] < scores[:, None, :])
    return is_wrong.sum((1, 2)).float() / is_better.sum().clamp_min(1)


def draw_tasks(
    wrong: Tensor, n_trials: int, n_members: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw a past task for each member `[M]`, more often the fewer pairs it orders wrongly.

    `wrong` is the `disagreement` of each task `[T]`. The order of the result is random.
    """
    weights = torch.softmax(-SHARPNESS * n_trials * wrong.double(), dim=0).numpy()
    # Evenly spaced quantiles: ten independent draws would often leave out a likely task.
    quantiles = (np.arange(n_members) + rng.random()) / n_members
    drawn = np.searchsorted(weights.cumsum(), quantiles).clip(max=len(weights) - 1)
    return rng.permutation(drawn)
