"""Prefixes of parameter names: which learner they name, and logarithms and inverses.

``svm_c`` belongs to a support vector machine. A study may tune ``log10_lr`` from -5 to -1 where a
prior knows the learning rate itself, or the strength ``alpha`` of a penalty where it knows ``C``,
the inverse of such a strength.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from dre_plugins.space.base import Array
from dre_plugins.transfer.learners import LEARNERS

# Numbers `[N]` to others `[N]`; NaN where they have none.
Change = Callable[[Array], Array]

_PREFIX = re.compile(r"^.*(?:__|[/:.])(?=[^/:.])")
_SEPARATORS = re.compile(r"[\W_]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Longer words first: ``random_forest`` before ``forest``.
_LEARNER_WORDS = sorted(
    ((word, key) for key, learner in LEARNERS.items() for word in learner.prefixes.split()),
    key=lambda entry: (-len(entry[0]), entry[0]),
)
# Words that stay whole in camelCase: learners, and names that no library writes with `_`.
_WHOLE = {word for word, _ in _LEARNER_WORDS}.union(
    "clipnorm colsample minbucket minsplit nhead nodesize ntree subsample".split()
)
# Words with other meanings (``lr_decay``): they name a learner only before one of its parameters.
_SHORT = ("cat", "logit", "lr")
# Words that name a part of a pipeline without saying what it is.
_STEPS = ("classifier", "regressor", "estimator", "model", "clf")
# A study asks for the same names at every suggestion, a hundred past studies for thousands.
_N_KEPT = 2**14


@lru_cache(_N_KEPT)
def normalised(name: str) -> str:
    """Return a name without case, with `_` for every separator and between words of camelCase.

    Names of classes, of learners and of some parameters (``CatBoost``, ``catBoost``, ``minSplit``)
    stay whole.

    >>> normalised("Max-Depth"), normalised("catBoost.maxDepth"), normalised("rpartMinSplit")
    ('max_depth', 'catboost_max_depth', 'rpart_minsplit')
    """
    words = [word if word[:1].isupper() else _parted(word) for word in _SEPARATORS.split(name)]
    return "_".join(words).casefold().strip("_")


def _parted(word: str) -> str:
    """Return a word of camelCase with `_` between its parts; an ending in `_WHOLE` stays whole."""
    parts = _HUMPS.split(word)
    for n_before in range(len(parts)):
        ending = "".join(parts[n_before:])
        if ending.casefold() in _WHOLE:
            return "_".join([*parts[:n_before], ending])
    return "_".join(parts)


@lru_cache(_N_KEPT)
def without_prefix(name: str) -> str:
    """Return the normalised name after the last of ``__ / : .``

    >>> without_prefix("model__max_depth"), without_prefix("params/max-depth")
    ('max_depth', 'max_depth')
    """
    return normalised(_PREFIX.sub("", name))


def without_learner(name: str) -> str:
    """Return the name after a learner, a step of a pipeline and a convention such as ``log10_``.

    >>> without_learner("svm_c"), without_learner("lgbm-lr"), without_learner("model_log10_lr")
    ('c', 'lr', 'lr')
    """
    return _split(name)[0]


# By which names match, one after the other.
FORMS = (str, str.casefold, normalised, without_prefix, without_learner)


def forms_of(name: str) -> set[str]:
    """Return all forms of a name, from the whole name to that without prefixes.

    >>> sorted(forms_of("clf__svm_C"))
    ['c', 'clf_svm_c', 'svm_c']
    """
    return {normalised(name), without_prefix(name), without_learner(name)}


@lru_cache(_N_KEPT)
def learner_of_prefix(name: str) -> str | None:
    """Return the learner that a prefix names, a key of `LEARNERS`; None if none does.

    >>> learner_of_prefix("svc__C"), learner_of_prefix("rf_max_depth"), learner_of_prefix("lr")
    ('svm', 'random-forest', None)
    """
    plain = normalised(name)
    for step in _STEPS:
        plain = plain.removeprefix(f"{step}_")
    return next((key for word, key in _LEARNER_WORDS if _is_prefix(word, key, plain)), None)


def _is_prefix(word: str, key: str, plain: str) -> bool:
    """Return whether a normalised name begins with a word of a learner."""
    rest = plain.removeprefix(f"{word}_")
    return rest != plain and (word not in _SHORT or rest in LEARNERS[key].weights)


# ---- the same quantity in other numbers


def _inverse(numbers: Array) -> Array:
    nan = np.full(numbers.shape, np.nan)
    inverses: Array = np.divide(1.0, numbers, nan, where=numbers != 0)
    return inverses


def _logarithm(base: float, values: Array) -> Array:
    nan = np.full(values.shape, np.nan)
    logarithms: Array = np.log(values, nan, where=values > 0) / np.log(base)
    return logarithms


# By word: from numbers as tuned to the quantity, and back. ``log_`` does not say its base.
CONVENTIONS: Mapping[str, tuple[Change, Change]] = {
    **{
        word: (partial(np.power, base), partial(_logarithm, base))
        for word, base in (("log10", 10.0), ("log2", 2.0), ("ln", math.e))
    },
    **dict.fromkeys(("inverse", "inv"), (_inverse, _inverse)),
}

# By normalised names: 1 for the strength of a penalty, -1 for its inverse.
_STRENGTHS = {"alpha": 1, "lambda": 1, "reg_param": 1, "c": -1, "cost": -1}


def change_of(source: str, target: str) -> Change | None:
    """Return how numbers of a parameter become those of the same quantity; None: as they are.

    >>> change_of("log10_lr", "lr")(np.array([-2.0])).tolist()
    [0.01]
    >>> change_of("svm_alpha", "C")(np.array([0.1])).tolist()
    [10.0]
    """
    (ours, our_word), (theirs, their_word) = _split(source), _split(target)
    is_inverse = _STRENGTHS.get(ours, 0) * _STRENGTHS.get(theirs, 0) < 0
    if our_word == their_word and not is_inverse:
        return None
    steps = [CONVENTIONS[our_word][0]] if our_word else []
    steps += [_inverse] if is_inverse else []
    steps += [CONVENTIONS[their_word][1]] if their_word else []
    return partial(_apply_steps, steps)


def _apply_steps(steps: Sequence[Change], numbers: Array) -> Array:
    for step in steps:
        numbers = step(numbers)
    return numbers


@lru_cache(_N_KEPT)
def _split(name: str) -> tuple[str, str]:
    """Return a name without its convention, and the word for that, empty without any."""
    plain = without_prefix(name)
    words = (*_LEARNER_WORDS, *((step, "") for step in _STEPS))
    first = next((word for word, key in words if _is_prefix(word, key, plain)), None)
    if first is not None:
        plain = plain[len(first) + 1 :]
    for word in CONVENTIONS:
        for bare in (plain.removeprefix(f"{word}_"), plain.removesuffix(f"_{word}")):
            if bare != plain and bare:
                return bare, word
    return plain, ""
