"""Several search spaces in one, with one name for what they call differently."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from small_priors import task

from dre_plugins import MetaDataset, Prior
from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Domain,
    Float,
    Integer,
    Normal,
    Ordinal,
    RangeCondition,
    SearchSpace,
)
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.spaces.alignment import align
from dre_plugins.transfer.spaces.merging import mergeable, merged_domain, merged_space, unify_names

RBF = Condition("gamma", "kernel", ("rbf",))


class TestDomains:
    @pytest.mark.parametrize(
        ("domains", "merged"),
        [
            ([Float(0, 1, step=0.1)] * 2, Float(0, 1, step=0.1)),
            ([Float(0, 1), Float(-1, 0.5)], Float(-1, 1)),
            ([Float(0.1, 1), Float(0.01, 0.5, "log")], Float(0.01, 1, "log")),
            ([Float(0, 1), Float(0.01, 0.5, "log")], Float(0, 1)),
            (
                [Float(0.5, 0.9, "reverse-log"), Float(0, 0.99, "reverse-log")],
                Float(0, 0.99, "reverse-log"),
            ),
            ([Float(0.5, 0.9, "reverse-log"), Float(0, 2)], Float(0, 2)),
            ([Integer(1, 5), Integer(3, 9, "log")], Integer(1, 9, "log")),
            ([Integer(1, 5), Float(0.5, 2)], Float(0.5, 5)),
            ([Integer(2, 6, step=2), Integer(4, 10, step=2)], Integer(2, 10, step=2)),
            ([Integer(2, 6, step=2), Integer(1, 9, step=2)], Integer(1, 9)),
            ([Integer(2, 6, step=2), Integer(2, 6)], Integer(2, 6)),
            ([Float(0, 1, step=0.25), Float(0.5, 2, step=0.25)], Float(0, 2, step=0.25)),
            ([Float(0, 1, step=0.25), Float(0.1, 2, step=0.25)], Float(0, 1.85)),
            ([Normal(0, 1), Normal(2, 1)], Float(-4, 6)),
            ([Constant(3), Constant(5)], Integer(3, 5)),
            ([Constant(3), Constant(0.5)], Float(0.5, 3)),
            ([Constant("a"), Constant("b")], Categorical(["a", "b"])),
            ([Constant(20), Integer(1, 10)], Integer(1, 20)),
            ([Constant(0.5), Integer(1, 10)], Float(0.5, 10)),
            ([Constant("c"), Categorical(["a", "b"])], Categorical(["c", "a", "b"])),
            ([Constant("a"), Categorical(["a"])], Categorical(["a"])),
            (
                [Categorical(["b", "a"]), Categorical(["a", 1, True])],
                Categorical(["b", "a", 1, True]),
            ),
            ([Ordinal([16, 64]), Ordinal([32])], Ordinal([16, 32, 64])),
            ([Ordinal([1, 9], "log"), Ordinal([3, 27], "log")], Ordinal([1, 3, 9, 27], "log")),
            ([Ordinal([1, 9], "log"), Ordinal([3, 27])], Ordinal([1, 3, 9, 27])),
            ([Ordinal([1, 9], "log"), Constant(0)], Ordinal([0, 1, 9], "linear")),
            ([Ordinal([1, 2]), Ordinal([1.0, 3])], Categorical([1, 1.0, 2, 3])),
            ([Ordinal(["s", "m", "l"]), Ordinal(["s", "l"])], Ordinal(["s", "m", "l"])),
            ([Ordinal(["s", "m"]), Ordinal(["m", "s"])], Categorical(["s", "m"])),
            ([Ordinal(["s", "l"]), Ordinal(["s", "m"])], Categorical(["s", "l", "m"])),
            ([Ordinal([16, 64]), Integer(8, 32, "log")], Integer(8, 64, "log")),
            ([Ordinal([1, 2]), Categorical(["auto"])], Categorical([1, 2, "auto"])),
            ([Integer(1, 3), Constant(None)], Categorical([1, 2, 3, None])),
            ([*[Integer(1, 9)] * 9, Categorical(["auto"])], Categorical([*range(1, 10), "auto"])),
        ],
    )
    def test_merged_domains(self, domains: list[Domain], merged: Domain) -> None:
        assert merged_domain("x", domains) == merged
        for domain in domains:
            for unit in np.linspace(0, 1, 7).tolist():
                assert merged.contains(domain.from_unit(unit))

    def test_shares_and_counts_have_a_logarithmic_range(self) -> None:
        domains = [Float(0.01, 0.5), Integer(1, 64)]
        assert merged_domain("rf_min_samples_leaf", domains) == Float(0.01, 64, "log")

    @pytest.mark.parametrize("other", [Float(0, 1), Integer(1, 100)])
    def test_many_numbers_beside_a_word(self, other: Domain) -> None:
        message = r"parameter 'x' is a number in one space and a word in another.*rename it"
        with pytest.raises(ValueError, match=message):
            merged_domain("x", [other, Categorical(["auto"])])


def kernels(kernels: list[str], *conditions: Any, **more: Domain) -> SearchSpace:
    return SearchSpace({"kernel": Categorical(kernels), "gamma": Float(0, 1), **more}, conditions)


class TestSpaces:
    def test_one_space_is_itself(self) -> None:
        space = kernels(["rbf", "linear"], RBF)
        again = kernels(["rbf", "linear"], RBF)
        assert merged_space([space]) is space
        assert merged_space([space, again]) is space
        with pytest.raises(ValueError, match="at least one"):
            merged_space([])

    def test_parameters_in_order_of_appearance(self) -> None:
        first = SearchSpace({"x": Float(0, 1), "seed": Constant(1)})
        second = SearchSpace({"y": Float(0, 1), "x": Float(0, 2), "q": Constant("a")})
        merged = merged_space([first, second])
        assert list(merged.domains) == ["x", "seed", "y", "q"]
        assert merged.optional == {"y"}
        assert merged.constants == {"seed": 1, "q": "a"}

    def test_equal_conditions_are_kept_with_their_values_united(self) -> None:
        first = kernels(["rbf", "linear"], RBF)
        second = kernels(["linear", "poly"], Condition("gamma", "kernel", ("poly",)))
        merged = merged_space([first, second])
        assert merged.conditions == (Condition("gamma", "kernel", ("rbf", "poly")),)
        assert merged.optional == frozenset()

    def test_an_unconditional_child_is_active_for_what_its_space_knows(self) -> None:
        merged = merged_space([kernels(["rbf", "linear"], RBF), kernels(["rbf"])])
        assert (merged.conditions, merged.optional) == ((RBF,), frozenset())
        fixed = SearchSpace({"kernel": Constant("poly"), "gamma": Float(0, 1)})
        merged = merged_space([kernels(["rbf", "linear"], RBF), fixed])
        assert merged.conditions == (Condition("gamma", "kernel", ("rbf", "poly")),)
        merged = merged_space([kernels(["rbf", "linear"], RBF), kernels(["rbf", "linear"])])
        assert merged.conditions == (Condition("gamma", "kernel", ("rbf", "linear")),)

    def test_ranges_are_united(self) -> None:
        def net(most: int, **bounds: float) -> SearchSpace:
            domains = {"n": Integer(1, most), "width": Integer(4, 64)}
            return SearchSpace(domains, [RangeCondition("width", "n", **bounds)])

        merged = merged_space([net(3, low=1.5), net(5, low=1.5)])
        assert merged.conditions == (RangeCondition("width", "n", low=1.5),)
        merged = merged_space([net(3, low=1.5), net(5, low=2.5, high=4)])
        assert merged.conditions == (RangeCondition("width", "n", low=1.5),)
        merged = merged_space([net(3, low=1.5), net(5, high=4)])
        assert (merged.conditions, merged.optional) == ((), {"width"})
        deep = SearchSpace({"n": Integer(2, 5), "width": Integer(4, 64)})
        merged = merged_space([net(3, low=1.5), deep])
        assert merged.conditions == (RangeCondition("width", "n", low=1.5),)

    def test_a_parent_that_can_no_longer_be_asked(self) -> None:
        first = SearchSpace({"n": Integer(1, 3), "x": Float(0, 1)}, [Condition("x", "n", (2,))])
        second = SearchSpace({"n": Float(0.5, 3), "x": Float(0, 1)})
        merged = merged_space([first, second])
        assert (merged.conditions, merged.optional) == ((), {"x"})

    def test_conditions_of_different_kinds(self) -> None:
        domains = {"n": Integer(1, 3), "x": Float(0, 1)}
        first = SearchSpace(domains, [Condition("x", "n", (2, 3))])
        second = SearchSpace(domains, [RangeCondition("x", "n", low=2)])
        merged = merged_space([first, second])
        assert (merged.conditions, merged.optional) == ((), {"x"})

    def test_conditions_in_a_circle(self) -> None:
        def chain(child: str, parent: str) -> SearchSpace:
            domains = {name: Categorical(["u", "v"]) for name in (child, parent)}
            return SearchSpace(domains, [Condition(child, parent, ("u",))])

        with pytest.raises(ValueError, match="form a cycle"):
            merged_space([chain("a", "b"), chain("b", "c"), chain("c", "a")])

    @given(st.integers(0, 2**32 - 1))
    def test_every_space_fits_into_the_merged_one(self, seed: int) -> None:
        spaces = [
            kernels(["rbf", "linear"], RBF, C=Float(0.1, 10, "log")),
            kernels(["rbf", "poly"], degree=Integer(1, 3), C=Integer(1, 100)),
            SearchSpace({"kernel": Constant("linear"), "C": Float(0.5, 1), "seed": Constant(3)}),
            SearchSpace({"C": Ordinal([1, 10, 1000]), "kernel": Categorical(["poly"])}),
        ]
        merged = merged_space(spaces)
        rng = np.random.default_rng(seed)
        for space in spaces:
            units = space.canonical(rng.random((5, space.n_parameters)))
            for before, after in zip(units, align(space, merged).convert(units), strict=True):
                configuration = space.to_configuration(before)
                assert merged.contains(configuration)
                again = merged.to_configuration(after)
                assert again == pytest.approx({**merged.constants, **configuration})


# ---- names


RATE = Float(1e-4, 1.0, "log")
BOOSTER = Categorical(("tree", "linear"))


def names_of(*spaces: SearchSpace) -> list[tuple[str, ...]]:
    return [tuple(space.domains) for space in unify_names(spaces)]


def space(*names: str) -> SearchSpace:
    return SearchSpace({name: RATE for name in names})


def test_aliases_and_spellings_get_one_name() -> None:
    found = names_of(space("lr", "depth"), space("Eta", "depth"), space("learning-rate", "depth"))
    assert found == [("Eta", "depth")] * 3


def test_what_earlier_spaces_contradict_is_left_out() -> None:
    number, word = space("lr", "depth"), SearchSpace({"eta": Categorical(("low", "high"))})
    assert mergeable([]) == []
    assert mergeable([number, number]) == [0, 1]
    assert mergeable([word, number, word, number]) == [0, 2]
    assert mergeable([number, word, number, word]) == [0, 2]


def test_it_does_not_depend_on_the_order() -> None:
    spaces = [space("eta", "max_depth"), space("maxdepth", "lr"), space("subsample", "lr")]
    assert names_of(*spaces) == names_of(*spaces[::-1])[::-1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("lr", "x"), ("log10_lr", "x")),  # numbers that mean something else
        (("eta", "gamma", "nrounds"), ("C", "gamma", "kernel")),  # a word of several meanings
        (("x0", "x1"), ("x2", "x3")),
    ],
)
def test_what_is_not_the_same_keeps_its_name(first, second) -> None:
    assert names_of(space(*first), space(*second)) == [first, second]


def test_conditions_and_optional_parameters_are_renamed() -> None:
    domains = {"booster": BOOSTER, "max_depth": Integer(1, 9), "learning_rate": RATE}
    condition = Condition("max_depth", "booster", ("tree",))
    conditional = SearchSpace(domains, [condition], ["learning_rate"])
    _, renamed = unify_names([space("booster", "eta", "maxdepth"), conditional])
    assert renamed.names == ("booster", "maxdepth", "eta")
    assert renamed.conditions == (replace(condition, child="maxdepth"),)
    assert renamed.optional == {"eta"}


def test_a_prior_learns_from_all_of_them() -> None:
    """One half of the tasks calls the rate something else; it is one column of the prior."""
    tasks = [task(f"task {n}", n, space("lr" if n % 2 else "eta")) for n in range(6)]
    settings = MetaTrainingSettings(n_steps=100, learning_rate=0.01, n_lists=4)
    prior = Prior.train(MetaDataset(tuple(tasks)), settings=settings)
    assert prior.space.names == ("eta",)
    points = np.linspace(0, 1, 101)[:, None]
    best = float(points[prior.scores(space("learning_rate"), points).argmax(), 0])
    assert best == pytest.approx(0.4, abs=0.1)


def test_a_prior_names_the_tasks_that_contradict_the_others() -> None:
    domains = {"a": Float(0, 1), "b": Categorical(["x", "y"]), "c": Float(0, 2)}
    spaces = {name: SearchSpace({"rate": domain}) for name, domain in domains.items()}
    none = np.zeros(2, np.bool_)
    tasks = [Task(name, s, np.eye(2)[:, :1], np.arange(2.0), none) for name, s in spaces.items()]
    with pytest.raises(ValueError, match=r"leave that space out. There is .* tasks \['b'\]"):
        Prior.train(MetaDataset(tuple(tasks)))
