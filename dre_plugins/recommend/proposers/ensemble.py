"""The ensemble's proposals: candidate pool → acquisition → choice."""

from dataclasses import replace
from functools import partial

import numpy as np

from dre_plugins.recommend.ensemble.fitted import fit_ensemble
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import Acquisition, CandidatePool, evolved
from dre_plugins.space.base import Units
from dre_plugins.space.candidates import recombine, with_fixed
from dre_plugins.space.seen import distinct

# While nothing is observed, recombinations of the best configurations of past tasks replace the
# search: the numbers of rounds, and of children and parents in each round.
N_ROUNDS = 2
N_CHILDREN = 256
N_PARENTS = 8


class EnsembleProposer:
    """Propose the candidate of the largest acquisition of an ensemble fitted to the trials."""

    def __init__(self, inputs: ModelInputs, rng: np.random.Generator) -> None:
        self._inputs, self._search, self._rng = inputs, inputs.search, rng
        self._ensemble = fit_ensemble(inputs, rng)
        self._pool: CandidatePool | None = None  # of the last choice, until the next fit

    def fantasize(self, pending: Units) -> None:
        """Fit a little further, to pending trials `[U, P]` at their predicted ranks."""
        self._ensemble = self._ensemble.fantasized(pending, self._rng)
        self._pool = None

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest acquisition."""
        ensemble = self._ensemble
        acquisition = partial(
            ensemble.acquisition,
            incumbent=ensemble.incumbent_ranks(request.branch, request.fixed),
            index=request.index,
        )
        if request.turn == "exploration":
            far = self._search.far(ensemble.elite(), self._inputs.evidence.units, self._rng)
            pool = CandidatePool(far, ensemble.predictions(far))
            choice = self._best(pool, acquisition, request)
            if choice.is_new:
                return choice
            request = replace(request, turn="model")
        if self._pool is None or request.taken is None or request.branch is not None:
            self._pool = self._new_pool(acquisition, request)
        return self._best(self._pool, acquisition, request)

    def _best(self, pool: CandidatePool, acquisition: Acquisition, request: Request) -> Choice:
        ensemble = self._ensemble
        units, predictions, is_new = self._search.best(
            pool, ensemble.predictions, acquisition, request, self._rng
        )
        mean, error = ensemble.tempered(predictions[:-1])
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            float(mean[0]),
            float(error[0]),
            ensemble.n_reference,
            self._inputs.expectation.prior_weight,
            expected_cost=self._inputs.gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    def _new_pool(self, acquisition: Acquisition, request: Request) -> CandidatePool:
        favourites = self._favourites()
        # The favourites of a single objective are no compromise with the others.
        is_blind = not self._inputs.evidence.lists and len(self._inputs.priors) == 1
        if is_blind and self._search.table is None:
            recombined = self._recombined(favourites, acquisition, request)
            if recombined is not None:
                return recombined
        return self._search.pool(
            self._ensemble.predictions,
            acquisition,
            request,
            self._rng,
            elite=self._ensemble.elite(),
            favourites=favourites,
        )

    def _recombined(
        self, favourites: Units, acquisition: Acquisition, request: Request
    ) -> CandidatePool | None:
        """Return recombinations of the best configurations of past tasks; None if all were tried.

        Values that many tasks agree on, parameter by parameter, are better than the best
        configuration of any one task.
        """
        fixed, space, rule = request.fixed, self._search.space, self._search.rule
        donors = rule.kept(with_fixed(favourites, fixed))
        donors = donors[distinct(space.canonical(donors), request.seen)]
        if not len(donors):
            return None

        def children(parents: Units) -> Units:
            return rule.kept(with_fixed(recombine(parents, donors, N_CHILDREN, self._rng), fixed))

        predict = self._ensemble.predictions
        return evolved(donors, predict, acquisition, N_ROUNDS, N_PARENTS, children)

    def _favourites(self) -> Units:
        """Return the best configurations of past tasks `[F, P]`, open parameters drawn."""
        none = np.empty((0, self._search.space.n_parameters))
        of_priors = [prior.favourites for prior in self._inputs.priors if prior is not None]
        favourites = np.concatenate([none, *of_priors])
        return np.where(np.isnan(favourites), self._rng.random(favourites.shape), favourites)
