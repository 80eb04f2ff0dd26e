"""Alignments of search spaces, and a real space with many conditions."""

from typing import Any

from dre_plugins.space import Categorical, Condition, Constant, Domain, Float, Integer, SearchSpace
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.spaces.alignment import Alignment, align

TREES = ("gbtree", "dart")
COLUMNS = ("colsample_bytree", "colsample_bylevel")
DEFAULTS = Prior.load("xgboost").card.defaults
XGBOOST = SearchSpace(
    {
        "booster": Categorical(["gblinear", "gbtree", "dart"]),
        "nrounds": Integer(7, 2981, "log"),
        "eta": Float(1e-3, 1.0, "log"),
        "gamma": Float(1e-5, 7.0, "log"),
        "lambda": Float(1e-3, 1e3, "log"),
        "alpha": Float(1e-3, 1e3, "log"),
        "subsample": Float(0.1, 1.0),
        "max_depth": Integer(1, 15),
        "min_child_weight": Float(2.7, 150.0, "log"),
        "colsample_bytree": Float(0.01, 1.0),
        "colsample_bylevel": Float(0.01, 1.0),
        "rate_drop": Float(0.0, 1.0),
        "skip_drop": Float(0.0, 1.0),
        "imputation": Categorical(["mean", "median", "hist"]),
    },
    [
        *(
            Condition(child, "booster", TREES)
            for child in ("eta", "gamma", "subsample", "max_depth", "min_child_weight", *COLUMNS)
        ),
        Condition("rate_drop", "booster", ("dart",)),
        Condition("skip_drop", "booster", ("dart",)),
    ],
)


def changed(space: SearchSpace, **domains: Domain | None) -> SearchSpace:
    """Return the space with some domains replaced or added; None removes a parameter."""
    merged = {name: d for name, d in {**space.domains, **domains}.items() if d is not None}
    searched = {name for name, domain in merged.items() if not isinstance(domain, Constant)}
    kept = [c for c in space.conditions if c.child in searched and c.parent in merged]
    return SearchSpace(merged, kept, space.optional & merged.keys())


def aligned(source: SearchSpace, target: SearchSpace, **options: Any) -> Alignment:
    alignment = align(source, target, **options)
    assert alignment is not None
    return alignment
