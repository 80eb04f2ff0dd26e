"""What past tasks expect a configuration to gain, beside what the study itself expects.

Each past task has processes of the universal prior, conditioned on its own trials. There a
configuration gains what it is expected to be better than all that the study has tried. The
acquisition is the weighted mean of these gains and of the improvement that the study's own
processes expect, the transfer acquisition function of Wistuba, Schilling and Schmidt-Thieme
("Scalable Gaussian process-based transfer surrogates for hyperparameter optimization", Machine
Learning 2018). As the study tries what was good in the past, the gains vanish, and a past task
that orders the trials otherwise has no weight, or is read with the opposite sign, see `reversals`.
What past tasks expect together is a feature of the study's own processes for some trials, see
`schedule`: where there is nothing to gain, it tells what is bad.

Notation: see docs/architecture.md; `T` past tasks.
"""

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
import torch

from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import abbreviated
from dre_plugins.recommend.lists import has_failed
from dre_plugins.recommend.members import log_ranks
from dre_plugins.recommend.prior import PastTask
from dre_plugins.recommend.sketch import sketched
from dre_plugins.recommend.universal_prior import Conditioned
from dre_plugins.space.base import Array, Features, Mask, Units
from dre_plugins.universal.file import load_network

# Share of the pairs of trials that a past task orders otherwise from which on it does not count:
# that of a random order.
MAX_MISRANKED = 0.5
# Weight of the study itself, and of a past task that orders all of its trials as they are: the
# largest value of Epanechnikov's kernel.
LARGEST_WEIGHT = 0.75
# Mean share of misranked pairs above which past tasks may be read with the opposite sign, and how
# many pairs then count as ordered rightly beside those of the study, so that few pairs do not
# reverse a task (lab/2026-11-30-reversed-past-studies.md).
MOSTLY_MISRANKED = 0.6
N_RIGHT = 3
# Number of trials from which on the study counts as much as all past tasks together
# (lab/2026-11-29-transfer-acquisition.md).
N_EQUAL = 10


class PastGains:
    """Hold what past tasks expect to gain, weighted by how alike they order the trials.

    At least one past task is needed.
    """

    def __init__(self, tasks: Sequence[PastTask], evidence: Evidence, reference: Units) -> None:
        self._space, self._reference = evidence.space, evidence.space.canonical(reference)
        self._n_ended = evidence.n_ended
        self._tasks = [*tasks]
        self._processes = [
            _conditioned_on(task.features.tobytes(), task.values.tobytes(), task.ranks.tobytes())
            for task in tasks
        ]
        self._signs = np.ones((len(tasks), 1))  # -1: read with the opposite sign
        expected, misranked = self._predicted(evidence.units), np.zeros(len(tasks))
        if evidence.can_rank:
            ranked, _ = evidence.joint_list
            shares, n_pairs = misranked_shares(expected[:, ranked.trials], ranked.ranks)
            is_reversed, misranked = reversals(shares, n_pairs)
            self._signs[is_reversed] = -1.0
            expected *= self._signs
        # A failed trial has not shown what was to gain; failures are modelled, see `at`.
        self._models_failures = evidence.failed == "model"
        tried = [not (self._models_failures and has_failed(trial)) for trial in evidence.trials]
        best = expected[:, tried].max(axis=1, keepdims=True, initial=-np.inf)
        weights = LARGEST_WEIGHT * (1.0 - (misranked / MAX_MISRANKED) ** 2).clip(0.0)
        counts = np.flatnonzero(weights).tolist()
        self._tasks = [self._tasks[place] for place in counts]
        self._processes = [self._processes[place] for place in counts]
        self._signs, self._best, self.weights = self._signs[counts], best[counts], weights[counts]
        # the last configurations, and what was expected of them: gains and the feature need both
        self._last: tuple[Units, Array] | None = None

    @property
    def have_tried(self) -> bool:
        """Return whether the study has tried anything, on which to gain."""
        return bool(np.isfinite(self._best).all())

    @property
    def names(self) -> str | None:
        """Return the names of the tasks that count, those of the largest weight first."""
        order = np.argsort(-self.weights, kind="stable")
        prefixes = np.where(self._signs[:, 0] < 0.0, "reversed ", "").tolist()
        names = [prefixes[place] + self._tasks[place].name for place in order]
        return abbreviated(names) or None

    @property
    def favourites(self) -> Units:
        """Return the best configurations of past tasks `[F, P]`, none of reversed ones.

        Parameters that a task does not know have the median of those that know them.
        """
        signs = zip(self._tasks, self._signs[:, 0], strict=True)
        of_tasks = [task.best for task, sign in signs if sign > 0.0]
        if not of_tasks:
            return np.empty((0, self._space.n_parameters))
        best = np.concatenate(of_tasks)
        is_known = ~np.isnan(best)
        medians = np.nanmedian(np.where(is_known.any(axis=0), best, 0.5), axis=0)
        return np.where(is_known, best, medians)

    def fantasize(self, pending: Units) -> None:
        """Count pending trials `[U, P]` among those that the study has tried."""
        expected = self.expected(pending).max(axis=1, keepdims=True)
        self._best = np.maximum(self._best, expected)

    def expected(self, units: Units) -> Array:
        """Return what each task expects at canonical coordinates `[N, P]`, `[T, N]`.

        It is in standard deviations of the task's targets.
        """
        if self._last is None or self._last[0] is not units:
            self._last = units, self._predicted(units)
        return self._last[1]

    def features(self, units: Units) -> Array:
        """Return the logarithms of ranks by what all tasks expect, `[N, P]` -> `[N, 1]`.

        A rank is the number of reference points that are expected to be better, see `log_ranks`.
        """
        scores = self.weights @ self.expected(units)
        n_reference = len(self._reference_scores)
        n_better = n_reference - self._reference_scores.searchsorted(scores, side="right")
        return log_ranks(n_better.astype(np.float64), n_reference)[:, None]

    @cached_property
    def _of_reference(self) -> Array:
        """Return what each task expects of the reference points `[T, K]`."""
        return self._predicted(self._reference)

    @cached_property
    def _reference_scores(self) -> Array:
        """Return what all tasks expect of the reference points `[K]`, the worst first."""
        return np.sort(self.weights @ self._of_reference)

    @torch.inference_mode()
    def _predicted(self, units: Units) -> Array:
        features = self._space.features(units)
        expected = [
            processes.expected(_read(features[:, task.columns])).numpy()
            for task, processes in zip(self._tasks, self._processes, strict=True)
        ]
        return np.asarray(self._signs * np.stack(expected))

    @torch.inference_mode()
    def at(self, units: Units) -> Array:
        """Return the weighted sum of gains at canonical coordinates `[C, P]`, `[C]`.

        Before the study has tried anything, a gain is what the task expects beyond its least
        expectation of a reference point. Where trials of a task have failed, its gains count by
        the probability of success, unless the study says what else failed trials mean.
        """
        if self.have_tried:
            gains = (self.expected(units) - self._best).clip(0.0)
        else:
            gains = self.expected(units) - self._of_reference.min(axis=1, keepdims=True)
        if self._models_failures and any(len(task.failed) for task in self._tasks):
            features = self._space.features(units)
            gains = gains * np.stack([chance_of_success(task, features) for task in self._tasks])
        return np.asarray(self.weights @ gains)

    def mean_with(self, log_improvements: Array, units: Units) -> Array:
        """Return logarithms of weighted means of gains and the study's improvements `[C]`.

        The study's weight grows with its trials; after `N_EQUAL` it is that of all past tasks.
        """
        of_past = self.weights.sum()
        of_study = max(LARGEST_WEIGHT, of_past * self._n_ended / N_EQUAL)
        with np.errstate(divide="ignore"):  # there may be nothing to gain
            log_gains = np.log(self.at(units))
        total = np.logaddexp(log_improvements + math.log(of_study), log_gains)
        return np.asarray(total - math.log(of_study + of_past))


def chance_of_success(task: PastTask, features: Features) -> Array:
    """Return how likely success is for a past task, at features of the study's space, `[C]`.

    Features are `[C, D]`.
    """
    failed = task.failed
    if not len(failed):
        return np.ones(len(features))
    succeeded = (~failed).astype(np.float64).tobytes()
    processes = _conditioned_on(task.ended.tobytes(), succeeded, succeeded)
    targets = processes.targets.numpy()  # one for failed trials, one for others
    least, most = targets[failed][0], targets[~failed][0]
    expected = processes.expected(_read(features[:, task.columns])).numpy()
    return np.asarray(((expected - least) / (most - least)).clip(0.0, 1.0))


def _read(features: Features) -> torch.Tensor:
    return torch.from_numpy(sketched(features)).double()


# By content, as tasks are expressed in the search space anew for each suggestion of Optuna.
@lru_cache(maxsize=256)
def _conditioned_on(features: bytes, values: bytes, ranks: bytes) -> Conditioned:
    """Return the processes of trials with the content of `[N, D]`, `[N]` and `[N]`.

    See `Conditioned.on`.
    """
    order, of_trials = np.frombuffer(ranks).copy(), np.frombuffer(values).copy()
    inputs = np.frombuffer(features, dtype=np.float32).reshape(len(order), -1)
    tensor = torch.from_numpy(inputs.astype(np.float64))
    return Conditioned.on(load_network(), tensor, of_trials, order)


def misranked_shares(expected: Array, ranks: Array) -> tuple[Array, int]:
    """Return the share of pairs of trials that past tasks order otherwise `[T]`, and their number.

    The number is of pairs whose ranks differ; without any, shares are 0.

    Args:
        expected: What each task expects of the trials `[T, N]`.
        ranks: Ranks of the trials `[N]`.
    """
    first, second = np.triu_indices(len(ranks), 1)
    signs = np.sign(ranks[first] - ranks[second])
    differ = signs != 0.0
    first, second, signs = first[differ], second[differ], signs[differ]
    is_misranked = (expected[:, first] - expected[:, second]) * signs < 0.0
    return np.asarray(is_misranked.sum(axis=1) / max(len(signs), 1)), len(signs)


def reversals(misranked: Array, n_pairs: int) -> tuple[Mask, Array]:
    """Return which past tasks are read with the opposite sign `[T]`, and what they misrank `[T]`.

    If past tasks on average order most pairs of trials otherwise, as those of another metric may,
    they are reversed, but only those whose share is above a half with `N_RIGHT` pairs added that
    they order rightly. A reversed task misranks the pairs that it ordered rightly, those included.
    To reverse a task by mistake costs more than to ignore it.

    Args:
        misranked: The share of pairs that each task orders otherwise `[T]`.
        n_pairs: Number of these pairs.
    """
    with_added = misranked * n_pairs / (n_pairs + N_RIGHT)
    is_reversed = (misranked.mean() > MOSTLY_MISRANKED) & (with_added > MAX_MISRANKED)
    return is_reversed, np.where(is_reversed, 1.0 - with_added, misranked)
