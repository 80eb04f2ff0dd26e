"""Outcomes of trials: every state, and extreme or invalid values; the smallest surrogate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cases import IS_LONG
from hypothesis import strategies as st
from presets import of_fits

from dre_plugins.engine import ScorerSettings
from dre_plugins.recommend import TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float, Integer, SearchSpace
from dre_plugins.study import AskTell

# A surrogate that still has all parts.
SCORER = ScorerSettings(n_members=2, hidden=(4,), activation="silu")
SMALL = of_fits(4, SCORER, universal_turns=True)
SETTINGS = Settings(preset=SMALL)

ODD = (
    *(float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 1.7e308, -1.7e308),
    *(5e-324, -5e-324, 0.0, -0.0, 10**400, -(10**400), 2**63, 0, np.float32(0.1), np.int64(-3)),
)
# A case of 2000 trials takes as long as fifty others.
LONG = (150, 600, 2000) if IS_LONG else (150,)
values = st.sampled_from(ODD) | st.floats() | st.integers(-5, 5)
steps = st.integers(0, 4) | st.sampled_from([0.5, 1e300, -1.0])
rungs = st.dictionaries(steps, values, max_size=3)
# Mostly few, as each must be right; some studies are long.
lengths = st.sampled_from([*range(13), *range(1, 13), *range(1, 9), 40, *LONG])


@dataclass(frozen=True)
class Outcome:
    """What became of one trial."""

    value: Any
    state: TrialState | None
    rungs: Mapping[float, Any]
    constraints: Mapping[str, Any]


outcomes = st.builds(
    Outcome,
    st.none() | values,
    st.sampled_from([None, None, None, *TrialState]),
    st.just({}) | rungs,
    st.just({}) | st.dictionaries(st.sampled_from(["a", "ü"]), values, max_size=2),
)


@dataclass(frozen=True)
class History:
    """Trials that were evaluated elsewhere: configurations by a seed, outcomes in turn."""

    n: int
    seed: int
    outcomes: Sequence[Outcome]

    def configurations(self, space: SearchSpace) -> list[dict[str, Any]]:
        """Return configurations, some of them twice and some out of range."""
        rng = np.random.default_rng(self.seed)
        found = []
        for _ in range(self.n):
            if found and rng.random() < 0.1:
                found.append(found[rng.integers(len(found))])
                continue
            units = rng.random(space.n_parameters)
            at_bounds = rng.random(space.n_parameters) < 0.1
            found.append(space.to_configuration(np.where(at_bounds, np.rint(units), units)))
            if rng.random() < 0.05:
                found[-1] = {name: _outside(space, name, v) for name, v in found[-1].items()}
        return found

    def add_to(self, study: AskTell, sign: float = 1.0) -> None:
        """Add all of them, as a study of a metric of this sign has them."""
        for number, configuration in enumerate(self.configurations(study.space)):
            outcome = self.outcomes[number % len(self.outcomes)]
            study.add(
                configuration,
                None if outcome.value is None else _signed(sign, outcome.value),
                state=outcome.state,
                rungs={step: _signed(sign, value) for step, value in outcome.rungs.items()},
                constraints=outcome.constraints,
            )


histories = st.builds(
    History, lengths, st.integers(0, 2**32 - 1), st.lists(outcomes, min_size=1, max_size=12)
)


def _signed(sign: float, value: Any) -> Any:
    return value if sign > 0 else -value


def _outside(space: SearchSpace, name: str, value: Any) -> Any:
    """Return a number that is out of range, unless what depends on it would no longer be there."""
    domain = space.domains[name]
    if space.conditions or not isinstance(domain, (Float, Integer)):
        return value
    if max(abs(domain.low), abs(domain.high)) > 1e100:
        return value
    return value + type(value)(3 * (domain.high - domain.low) // 2)
