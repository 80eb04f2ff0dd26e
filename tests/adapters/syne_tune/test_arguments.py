"""Arguments of the schedulers: bad ones are refused, and their order is Syne Tune's."""

import inspect
import math
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import pytest
from syne_tune_loop import ashadre, dre
from syne_tune_rows import SPACE, evaluations

from dre_plugins.adapters.syne_tune import (
    ASHADRE,
    DRE,
    MODRE,
    DRETransfer,
    MultiObjectiveDRESearcher,
    prior_from_evaluations,
    recommend,
)

pytestmark = pytest.mark.usefixtures("small_priors")
PAST = {"t": evaluations()}
modre = partial(MODRE, SPACE, ["loss", "time"])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DRE(SPACE, ["loss", "time"]), r"metric must be the name of one metric.*time"),
        (lambda: ASHADRE(SPACE, ["loss"], "epoch", 9), "metric must be the name of one metric"),
        (lambda: DRE(SPACE, "loss", random_seed=-1), "random_seed must be"),
        (lambda: ashadre(grace_period=0), "grace_period must be a number above 0, got 0"),
        (lambda: ashadre(grace_period=10), "max_t must be .* at least grace_period=10, got 9"),
        (lambda: ashadre(reduction_factor=1), "reduction_factor must be a number above 1, got 1"),
        (lambda: ashadre(brackets=0), "brackets must be an integer of at least 1, got 0"),
        (lambda: ASHADRE(SPACE, "loss", "epoch", "9"), "max_t must be a number .* got '9'"),
        (
            lambda: ASHADRE(SPACE, "loss", "epoch", math.inf),
            "max_t must be a number below infinity.* got inf",
        ),
        (lambda: recommend("wine"), "experiment must be what load_experiment returns, got 'wine'"),
        (lambda: DRE({3: SPACE["lr"]}, "loss"), "config_space must be domains by name, got {3:"),
        (lambda: ASHADRE(SPACE, "loss", None, 9), "time_attr must be the name .* got None"),
        (lambda: DRE(["lr"], "loss"), r"config_space must be domains by name, got \['lr'\]"),
        (lambda: ashadre(grace_period="1"), "grace_period must be a number above 0, got '1'"),
        (lambda: ashadre(reduction_factor="3"), "reduction_factor must be a number .* got '3'"),
        (lambda: ashadre(brackets=1.5), "brackets must be an integer of at least 1, got 1.5"),
        (lambda: dre(prior="nowhere"), "nowhere"),
        (lambda: dre(do_minimize="max"), "do_minimize must be True or False, got 'max'"),
        (lambda: dre(do_minimize=None), "do_minimize must be True or False, got None"),
        (lambda: ashadre(do_minimize="min"), "do_minimize must be True or False, got 'min'"),
        (lambda: DRETransfer(SPACE, "loss", {}, "max"), "do_minimize must be True or False"),
        *(
            (partial(prior_from_evaluations, PAST, "loss", wrong), "do_minimize must be True or F")
            for wrong in (None, "max", 0)
        ),
        (lambda: DRETransfer(SPACE, "loss", {}), "nothing to learn"),
        (
            lambda: DRETransfer({"momentum": SPACE["lr"]}, "loss", PAST),
            r"(?s)lr.*momentum|momentum.*lr",  # nothing in common
        ),
        (lambda: MODRE(SPACE, "loss"), r"metrics must be .*two.*DRE.*got 'loss'"),
        (lambda: MODRE(SPACE, ["loss"]), r"metrics must be .*two.*DRE.*got \['loss'\]"),
        (lambda: MODRE(SPACE, ["loss", 3]), "metrics must be"),
        (lambda: MODRE(SPACE, ["loss", "size", "loss"]), "metrics must be .*different"),
        (lambda: modre(do_minimize=[True]), r"do_minimize must be .*'loss', 'time'.*\[True\]"),
        (lambda: modre(do_minimize=["min", "max"]), "do_minimize must be"),
        (lambda: modre(do_minimize=None), "do_minimize must be"),
        (lambda: modre(prior=["nowhere", None]), "nowhere"),
        (lambda: modre(points_to_evaluate=[{"lr": "far"}]), "lr must be"),
        (lambda: MultiObjectiveDRESearcher(SPACE, n_objectives=1), "n_objectives.*DRESearcher"),
    ],
)
def test_bad_arguments_are_refused_at_once(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("build", [dre, ashadre, modre])
def test_unknown_options_are_refused_in_the_name_of_the_scheduler(build: Any) -> None:
    with pytest.raises(TypeError, match=r"^(ASHA|MO)?DRE has no arguments \['n_start'\]"):
        build(n_start=3)


@pytest.mark.skipif(
    version("syne-tune").startswith("0.15."), reason="other orders before Syne Tune 0.16"
)
def test_arguments_stand_as_in_the_baselines() -> None:
    from syne_tune.optimizer.baselines import ASHABORE, BORE, EHVI

    for mine, theirs in ((DRE, BORE), (ASHADRE, ASHABORE), (MODRE, EHVI)):
        wanted = [*inspect.signature(theirs).parameters.values()]
        found = [*inspect.signature(mine).parameters.values()][: len(wanted)]
        assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in wanted]
