"""Words before the name of a parameter that say which learner it belongs to: ``svm_c``."""

from __future__ import annotations

import re
from functools import lru_cache

from dre_plugins.transfer.learners import LEARNERS
from dre_plugins.transfer.spaces.conventions import Change, change_between, without_convention

_PREFIX = re.compile(r"^.*(?:__|[/:.])(?=[^/:.])")
_SEPARATORS = re.compile(r"[\W_]+")

# Longer words first: ``random_forest`` before ``forest``.
_LEARNER_WORDS = sorted(
    ((word, key) for key, learner in LEARNERS.items() for word in learner.prefixes),
    key=lambda entry: (-len(entry[0]), entry[0]),
)
# Words that name a part of a pipeline without saying what it is.
_STEPS = ("classifier", "regressor", "estimator", "model", "clf")
# A study asks for the same names at every suggestion.
_N_KEPT = 1024


def normalised(name: str) -> str:
    """Return a name without case and with `_` for every separator.

    >>> normalised("Max-Depth"), normalised("model__max_depth")
    ('max_depth', 'model_max_depth')
    """
    return _SEPARATORS.sub("_", name.casefold()).strip("_")


def without_prefix(name: str) -> str:
    """Return the normalised name after the last of ``__ / : .``

    >>> without_prefix("model__max_depth"), without_prefix("params/max-depth")
    ('max_depth', 'max_depth')
    """
    return normalised(_PREFIX.sub("", name))


@lru_cache(_N_KEPT)
def without_learner(name: str) -> str:
    """Return the name after a learner, a step of a pipeline and a convention such as ``log10_``.

    >>> without_learner("svm_c"), without_learner("lgbm-lr"), without_learner("model_log10_lr")
    ('c', 'lr', 'lr')
    """
    return without_convention(_without_words(without_prefix(name)))


def forms_of(name: str) -> set[str]:
    """Return what a name may be known as, from the whole to what is left without prefixes.

    >>> sorted(forms_of("clf__svm_C"))
    ['c', 'clf_svm_c', 'svm_c']
    """
    return {normalised(name), without_prefix(name), without_learner(name)}


def _without_words(plain: str) -> str:
    for word in (*(word for word, _ in _LEARNER_WORDS), *_STEPS):
        if plain.startswith(f"{word}_"):
            return plain[len(word) + 1 :]
    return plain


@lru_cache(_N_KEPT)
def learner_of_prefix(name: str) -> str | None:
    """Return the learner that a prefix names, a key of `LEARNERS`; None if none does.

    >>> learner_of_prefix("svc__C"), learner_of_prefix("rf_max_depth"), learner_of_prefix("lr")
    ('svm', 'random-forest', None)
    """
    plain = normalised(name)
    for step in _STEPS:
        plain = plain.removeprefix(f"{step}_")
    return next((key for word, key in _LEARNER_WORDS if plain.startswith(f"{word}_")), None)


def change_of(source: str, target: str) -> Change | None:
    """Return how numbers of a parameter become those of another one; None: as they are."""
    ours, theirs = (_without_words(without_prefix(name)) for name in (source, target))
    return change_between(ours, theirs)
