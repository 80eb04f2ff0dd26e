"""Tuning tasks: scenarios, each with one search space and many tasks.

Those of YAHPO Gym (Pfisterer et al., 2022) are one learner on many data sets: a neural network
that predicts what a large random-search run measured. ``YahpoScenario`` needs the full data and
onnxruntime; ``load_extract`` reads the small sample of it that the repository ships.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import optuna

Configuration: TypeAlias = dict[str, Any]
T = TypeVar("T")
Split: TypeAlias = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

OUTPUTS = ("acc", "bac", "auc", "brier", "f1", "logloss", "timetrain", "timepredict", "memory")

# The order of the network's inputs, which its files do not state.
_IMPUTATION = "num.impute.selected.cpo"
_CATEGORICAL_INPUTS = {
    "rbv2_xgboost": ("task_id", "booster", _IMPUTATION),
    "rbv2_rpart": ("task_id", _IMPUTATION),
}
_CONTINUOUS_INPUTS = {
    "rbv2_xgboost": (
        "nrounds",
        "eta",
        "gamma",
        "lambda",
        "alpha",
        "subsample",
        "max_depth",
        "min_child_weight",
        "colsample_bytree",
        "colsample_bylevel",
        "rate_drop",
        "skip_drop",
        "trainsize",
        "repl",
    ),
    "rbv2_rpart": ("cp", "maxdepth", "minbucket", "minsplit", "trainsize", "repl"),
}
SCENARIOS = tuple(_CONTINUOUS_INPUTS)

_NOT_TUNED = ("task_id", "trainsize", "repl")
N_REPETITIONS = 10  # of the cross-validation


@dataclass(frozen=True)
class Parameter:
    """One tuned parameter: its range or choices, and when it is active.

    Attributes:
        name: Name as in ``config_space.json``.
        kind: ``"float"``, ``"int"`` or ``"categorical"``.
        low: Lowest value, included; 0 if categorical.
        high: Highest value, included; 0 if categorical.
        log: Whether the range is searched on a logarithmic scale.
        choices: Values of a categorical parameter.
        parent: Name of the categorical parameter that decides whether this one is active.
        active_for: Values of the parent for which this one is active.
    """

    name: str
    kind: Literal["float", "int", "categorical"]
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[str, ...] = ()
    parent: str | None = None
    active_for: tuple[str, ...] = ()

    def is_active(self, configuration: Mapping[str, Any]) -> bool:
        """Whether this parameter belongs to ``configuration``, which holds its parent."""
        return self.parent is None or configuration.get(self.parent) in self.active_for

    def draw(self, rng: np.random.Generator) -> float | int | str:
        """Draw a value uniformly on the parameter's own scale."""
        if self.kind == "categorical":
            return self.choices[int(rng.integers(len(self.choices)))]
        margin = 0.5 if self.kind == "int" else 0.0  # end values are as likely as others
        low, high = self.low - margin, self.high + margin
        value = (
            math.exp(rng.uniform(math.log(low), math.log(high)))
            if self.log
            else rng.uniform(low, high)
        )
        value = min(max(value, self.low), self.high)
        return round(value) if self.kind == "int" else value

    def suggest(self, trial: optuna.trial.BaseTrial) -> float | int | str:
        """Ask an Optuna trial for a value."""
        if self.kind == "categorical":
            return str(trial.suggest_categorical(self.name, self.choices))
        if self.kind == "int":
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, log=self.log)


def only_for(parent: str, value: str, *parameters: Parameter) -> tuple[Parameter, ...]:
    """Return parameters that are active for one value of their parent."""
    return tuple(replace(entry, parent=parent, active_for=(value,)) for entry in parameters)


def configured(
    parameters: Sequence[Parameter], value_of: Callable[[Parameter], Any]
) -> Configuration:
    """Return a configuration with the value of each active parameter, parents first."""
    configuration: Configuration = {}
    for parameter in parameters:
        if parameter.is_active(configuration):
            configuration[parameter.name] = value_of(parameter)
    return configuration


def active_part(
    parameters: Sequence[Parameter], configuration: Mapping[str, Any]
) -> Configuration:
    """Return the parameters of a configuration that are active in it."""
    return configured(parameters, lambda parameter: configuration[parameter.name])


def split_by_position(tasks: Sequence[T]) -> dict[Split, list[T]]:
    """Hold out every tenth task for tests, and every tenth for validation: 0, … and 5, …."""
    splits: dict[Split, list[T]] = {split: [] for split in SPLITS}
    held_out: dict[int, Split] = {0: "test", 5: "validation"}
    for position, task in enumerate(tasks):
        splits[held_out.get(position % 10, "train")].append(task)
    return splits


class Scenario:
    """A search space and what evaluates it, on tasks of the same kind; to be subclassed.

    A subclass defines ``value`` or ``evaluate_many``, as each has a default by the other.

    Attributes:
        name: Name of the scenario.
        metric: Name of the output that is maximised.
        parameters: Tuned parameters, parents before children.
        tasks: Numbers of the tasks in ascending order.
        n_reference: Size of the random sample that values are compared with.
    """

    name: str
    metric: str
    parameters: tuple[Parameter, ...]
    tasks: list[int]
    n_reference: int = 2000

    @property
    def splits(self) -> dict[Split, list[int]]:
        """Tasks of each split, by position in ``tasks``: 0, 10, … test; 5, 15, … validation."""
        return split_by_position(self.tasks)

    def evaluate_many(
        self, task: int, configurations: Sequence[Mapping[str, Any]]
    ) -> dict[str, NDArray[np.float64]]:
        """Evaluate many configurations on one task: an array ``[N]`` for each output."""
        values = [self.value(task, configuration) for configuration in configurations]
        return {self.metric: np.array(values, dtype=np.float64)}

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """What is maximised, of one configuration."""
        return float(self.evaluate_many(task, [configuration])[self.metric][0])

    def random_configurations(self, n: int, rng: np.random.Generator) -> list[Configuration]:
        """Draw ``n`` configurations uniformly; only active parameters are in them."""
        return [configured(self.parameters, lambda p: p.draw(rng)) for _ in range(n)]

    def suggest(self, trial: optuna.trial.BaseTrial) -> Configuration:
        """Ask an Optuna trial for a configuration, define-by-run: active parameters only."""
        return configured(self.parameters, lambda parameter: parameter.suggest(trial))

    def objective(self, trial: optuna.trial.BaseTrial, task: int) -> float:
        """The value of what ``trial`` suggests, to be maximised."""
        return self.value(task, self.suggest(trial))


class YahpoScenario(Scenario):
    """One scenario of YAHPO Gym: a search space and a network that evaluates it on many tasks.

    Attributes:
        name: ``"rbv2_xgboost"`` or ``"rbv2_rpart"``.
        parameters: Tuned parameters, parents before children.
        tasks: OpenML task ids in ascending order.
    """

    metric = "acc"

    def __init__(self, folder: str | Path) -> None:
        """Read a scenario.

        Args:
            folder: Holds ``config_space.json``, ``encoding.json`` and ``model.onnx``; its name is
                the scenario's.
        """
        folder = Path(folder)
        self.name = folder.name
        if self.name not in SCENARIOS:
            raise ValueError(f"unknown scenario {self.name!r}; known: {', '.join(SCENARIOS)}.")
        space = json.loads((folder / "config_space.json").read_text())
        self.parameters = _read_parameters(space)
        self.tasks = _read_tasks(space)
        self._codes: dict[str, dict[str, int]] = json.loads((folder / "encoding.json").read_text())
        self._session = session(folder / "model.onnx")

    def evaluate(
        self, task: int, configuration: Mapping[str, Any], *, trainsize: float = 1.0
    ) -> dict[str, float]:
        """Evaluate one configuration on one task.

        Args:
            task: OpenML task id.
            configuration: Values of the active parameters.
            trainsize: Share of the training data, 0.03 to 1.

        Returns:
            A value for each name in ``OUTPUTS``.
        """
        outputs = self.evaluate_many(task, [configuration], trainsize=trainsize)
        return {name: float(values[0]) for name, values in outputs.items()}

    def evaluate_many(
        self, task: int, configurations: Sequence[Mapping[str, Any]], *, trainsize: float = 1.0
    ) -> dict[str, NDArray[np.float64]]:
        """Evaluate many configurations on one task: ``evaluate``, with an array ``[N]`` a name."""
        if task not in self.tasks:
            raise ValueError(f"{self.name} has no task {task}.")
        fixed = {"task_id": str(task), "trainsize": trainsize, "repl": N_REPETITIONS}
        rows = [{**configuration, **fixed} for configuration in configurations]
        categorical = [
            [self._codes[name][row.get(name, "#na#")] for name in _CATEGORICAL_INPUTS[self.name]]
            for row in rows
        ]
        continuous = [
            [row.get(name, 0.0) for name in _CONTINUOUS_INPUTS[self.name]] for row in rows
        ]
        (outputs,) = self._session.run(
            None,
            {
                "x_cat": np.asarray(categorical, dtype=np.int32),
                "x_cont": np.asarray(continuous, dtype=np.float32),
            },
        )
        return dict(zip(OUTPUTS, outputs.T.astype(np.float64), strict=True))


@dataclass(frozen=True)
class TaskSample:
    """Random configurations of one task and what they reached.

    Attributes:
        scenario: Name of the scenario.
        task: OpenML task id.
        parameters: Names of the columns of ``values``.
        values: Raw parameter values ``[N, P]``; NaN where a parameter is inactive, the index into
            ``choices`` for a categorical one.
        choices: Values of each categorical parameter, by name.
        outputs: An array ``[N]`` for each output.
    """

    scenario: str
    task: int
    parameters: tuple[str, ...]
    values: NDArray[np.float32]
    choices: dict[str, tuple[str, ...]]
    outputs: dict[str, NDArray[np.float32]]


def load_extract(path: str | Path) -> list[TaskSample]:
    """Read the extract that ``dre_bench.extract`` writes."""
    with np.load(path, allow_pickle=False) as arrays:
        header = json.loads(str(arrays["header"]))
        return [
            TaskSample(
                scenario=name,
                task=task,
                parameters=tuple(scenario["parameters"]),
                values=arrays[f"{name}/{task}/values"],
                choices={key: tuple(choices) for key, choices in scenario["choices"].items()},
                outputs=dict(
                    zip(header["outputs"], arrays[f"{name}/{task}/outputs"].T, strict=True)
                ),
            )
            for name, scenario in header["scenarios"].items()
            for task in scenario["tasks"]
        ]


def _read_parameters(space: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Tuned parameters of a ``config_space.json``, unconditional ones first."""
    conditions = {
        condition["child"]: (
            condition["parent"],
            tuple(condition["values"] if condition["type"] == "IN" else [condition["value"]]),
        )
        for condition in space["conditions"]
    }
    parameters = [
        read_parameter(entry, *conditions.get(entry["name"], (None, ())))
        for entry in space["hyperparameters"]
        if entry["name"] not in _NOT_TUNED
    ]
    return tuple(sorted(parameters, key=lambda parameter: parameter.parent is not None))


def read_parameter(
    entry: Mapping[str, Any], parent: str | None = None, active_for: tuple[str, ...] = ()
) -> Parameter:
    """Return a parameter as a ``config_space.json`` describes it."""
    if entry["type"] == "categorical":
        return Parameter(
            name=entry["name"],
            kind="categorical",
            choices=tuple(entry["choices"]),
            parent=parent,
            active_for=active_for,
        )
    return Parameter(
        name=entry["name"],
        kind="int" if entry["type"] == "uniform_int" else "float",
        low=entry["lower"],
        high=entry["upper"],
        log=entry["log"],
        parent=parent,
        active_for=active_for,
    )


def _read_tasks(space: Mapping[str, Any]) -> list[int]:
    (entry,) = (entry for entry in space["hyperparameters"] if entry["name"] == "task_id")
    return sorted(int(task) for task in entry["choices"])


def session(path: Path) -> Any:
    """Return an onnxruntime session with one thread: runs share the machine by processes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
