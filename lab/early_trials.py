"""What makes the first twenty trials good: first points, turns and models, swapped one by one.

    PYTHONPATH=.:benchmarks:lab nice -n 19 python lab/early_trials.py run runs.jsonl 30 default ...
    PYTHONPATH=.:benchmarks:lab python lab/early_trials.py report runs.jsonl default ...

Tasks are validation tasks and functions that are no test tasks, each translated by up to a quarter
of its range, so that the centre of the space is no gift. A run goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from memory_lives import space_of
from scipy.stats import wilcoxon
from tuning_tasks import scenario_of

from dre_bench.synthetic import SyntheticScenario, synthetic_scenario
from dre_bench.tasks import Parameter
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, SearchSpace

REAL = ("lcbench", "rbv2_rpart")  # without conditions, which `space_of` does not state
MIXED = ("mixed", "bowl")
# Name -> BoTorch's class, number of parameters, the optimum where all its coordinates are equal.
FUNCTIONS: dict[str, tuple[str, int | None, float | None]] = {
    "Levy": ("Levy", 4, 1.0),
    "Levy6": ("Levy", 6, 1.0),
    "Hartmann": ("Hartmann", 4, None),
    "Rosenbrock": ("Rosenbrock", 3, 1.0),
    "StyblinskiTang": ("StyblinskiTang", 5, -2.903534),
    "Griewank": ("Griewank", 4, 0.0),
    "DixonPrice": ("DixonPrice", 4, None),
    "Powell": ("Powell", 4, 0.0),
    "Michalewicz": ("Michalewicz", 5, None),
    "Ackley": ("Ackley", 3, 0.0),
    "SixHumpCamel": ("SixHumpCamel", None, None),
    "Rastrigin": ("Rastrigin", 3, 0.0),
}
OPTIMUM = {"StyblinskiTang": 5 * 39.16599, "Hartmann": -np.inf, "Michalewicz": -np.inf}
OPTIMUM["SixHumpCamel"] = -np.inf  # that of the translated box is the best that was found
N_SEEDS, N_TASKS, N_STARTUP = 4, 5, 5
AT = (5, 8, 10, 12, 15, 20, 25, 30, 50, 100)
LEAST = 1e-4  # regret that counts as none in logarithms


@dataclass(frozen=True)
class Version:
    """Say who proposes.

    Args:
        is_centred: Whether the first trial is the centre, and Sobol points follow.
        model: Who proposes from the sixth trial on: "universal" or "gp"; None: the schedule.
        until: Trials after which the schedule decides.
    """

    is_centred: bool = False
    model: str | None = None
    until: int = 20


VERSIONS = {
    "default": Version(),
    "centre": Version(is_centred=True),
    "universal": Version(model="universal"),
    "centre+universal": Version(is_centred=True, model="universal"),
    "centre+universal10": Version(is_centred=True, model="universal", until=10),
    "gp": Version(model="gp"),
    "centre+gp": Version(is_centred=True, model="gp"),
}


class Translated(SyntheticScenario):
    """A function of BoTorch on a box of the same size elsewhere."""

    def __init__(self, name: str) -> None:
        import torch
        from botorch import test_functions

        known, n_parameters, self._optimum = FUNCTIONS[name]
        shape = {} if n_parameters is None else {"dim": n_parameters}
        self._problem = getattr(test_functions, known)(**shape)
        self._bounds = self._problem.bounds.T.numpy().copy()
        # It refuses what lies outside of its own box.
        self._problem.bounds = torch.tensor([[-1e9], [1e9]]).expand(2, len(self._bounds))
        self.name, self.tasks = name, [1]
        self.parameters = tuple(
            Parameter(f"x{i}", "float", low, high)
            for i, (low, high) in enumerate(self._bounds.tolist())
        )

    def evaluate_many(self, task: int, configurations: Any) -> dict[str, Any]:
        """Evaluate configurations."""
        import torch

        names = [parameter.name for parameter in self.parameters]
        points = np.array([[given[name] for name in names] for given in configurations])
        low, width = self._bounds[:, 0], np.diff(self._bounds)[:, 0]
        shift = np.random.default_rng(1000 + task).uniform(-0.25, 0.25, len(width))
        if self._optimum is not None:
            at = (self._optimum - low) / width
            shift = np.clip(shift, at - 0.95, at - 0.05)
        shift *= {"Hartmann": 0.4, "Michalewicz": 0.6}.get(self.name, 1.0)
        with torch.no_grad():
            values = -self._problem.evaluate_true(torch.from_numpy(points + shift * width))
        return {self.metric: values.double().numpy()}


@cache
def scenario(name: str) -> Any:
    """Return a scenario by its name."""
    if name in FUNCTIONS:
        return Translated(name)
    return scenario_of(name) if name in REAL else synthetic_scenario(name)


def tasks() -> list[tuple[str, int]]:
    """Return the scenario and the number of each task."""
    real = [(name, int(scenario(name).validation[i])) for i in range(N_TASKS) for name in REAL]
    return [*real, *((name, 1) for name in FUNCTIONS), *((name, 5) for name in MIXED)]


@cache
def reference(name: str, task: int) -> tuple[float, float]:
    """Return the median of 2000 random configurations and the best value that is known."""
    drawn = scenario(name).random_configurations(2000, np.random.default_rng(task))
    values = scenario(name).evaluate_many(task, drawn)[scenario(name).metric]
    known = -np.inf if name in REAL else OPTIMUM.get(name, 0.0)
    return float(np.median(values)), max(float(values.max()), known)


def study(name: str, task: int, version: Version, seed: int, n_trials: int) -> list[float]:
    """Return the values of one study."""
    space = space_of(scenario(name).parameters)
    recommender = Recommender(space, RecommenderSettings(), seed=seed)
    history: list[Trial] = []
    for number in range(n_trials):
        if version.is_centred and number < N_STARTUP:
            chosen = _centred(space, recommender, number)
        elif version.model == "gp" and N_STARTUP <= number < version.until:
            chosen = _by_gaussian_process(space, history, seed)
        else:
            is_given = version.model and N_STARTUP <= number < version.until
            # Odd numbers are turns of the universal prior, and these of no branch.
            index = 4 * number + 1 if is_given else number
            chosen = recommender.suggest(history, index=index)[0].configuration
        value = float(scenario(name).value(task, chosen))
        history.append(Trial(chosen, TrialState.COMPLETE, value))
    assert not recommender.stats["fallbacks"]
    return [float(trial.value) for trial in history]


def _centred(space: SearchSpace, recommender: Recommender, number: int) -> dict[str, Any]:
    if number:
        return recommender.suggest([], index=number - 1)[0].configuration
    return {
        name: domain.choices[len(domain.choices) // 2]
        if isinstance(domain, Categorical)
        else domain.from_unit(0.5)
        for name, domain in space.domains.items()
    }


def _by_gaussian_process(space: SearchSpace, history: list[Trial], seed: int) -> dict[str, Any]:
    """Return the choice of BoTorch's process at its defaults; categories are read as ordered."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    units = space.canonical(space.to_units([trial.configuration for trial in history]))
    values = torch.tensor([[trial.value] for trial in history], dtype=torch.float64)
    values = (values - values.mean()) / values.std().clamp_min(1e-12)
    process = SingleTaskGP(torch.from_numpy(units), values)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(process.likelihood, process))
    with torch.random.fork_rng():
        found, _ = optimize_acqf(
            LogExpectedImprovement(process, best_f=values.max()),
            torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, units.shape[1]),
            q=1,
            num_restarts=10,
            raw_samples=512,
            options={"maxiter": 100, "seed": 1000 * seed + len(history)},
        )
    return space.to_configuration(found[0].numpy())


def run(path: Path, n_trials: int, names: list[str]) -> None:
    """Run the studies that are missing."""
    lines = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    for seed in range(N_SEEDS):
        for name, task in tasks():
            for version in names:
                key = (version, name, task, seed)
                if key not in done:
                    values = study(name, task, VERSIONS[version], seed, n_trials)
                    with path.open("a") as file:
                        file.write(json.dumps({"key": key, "values": values}) + "\n")


def report(path: Path, names: list[str]) -> None:
    """Print mean regret and mean log10 of it, and tests against the first version over tasks."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    curves = {tuple(row["key"]): np.maximum.accumulate(row["values"]) for row in rows}
    keys = set.intersection(*({key[1:] for key in curves if key[0] == of} for of in names))
    n_trials = min(len(curves[(of, *key)]) for of in names for key in keys)
    at = [number for number in AT if number <= n_trials]
    for group in ((*FUNCTIONS, *MIXED), REAL, (*FUNCTIONS, *MIXED, *REAL)):
        found = sorted({key[:2] for key in keys if key[0] in group})
        print(len(found), "tasks", sum(key[0] in group for key in keys), "pairs; at", at)
        first = None
        for of in names if found else ():
            regrets = []
            for name, task in found:
                median, best = reference(name, task)
                best = max(best, *(c[-1] for key, c in curves.items() if key[1:3] == (name, task)))
                runs = [curves[(of, *key)] for key in keys if key[:2] == (name, task)]
                regrets.append([[(best - c[n - 1]) / (best - median) for n in at] for c in runs])
            means = np.array([np.mean(of_task, 0) for of_task in regrets])
            logs = np.array(
                [np.log10(np.clip(of_task, LEAST, None)).mean(0) for of_task in regrets]
            )
            print(f"  {of:20}", means.mean(0).round(3), "log10", logs.mean(0).round(2))
            if first is None:
                first = logs
            else:
                tests = [
                    wilcoxon(after, before).pvalue if (after != before).any() else 1.0
                    for after, before in zip(logs.T, first.T, strict=True)
                ]
                print(" " * 22, "p", np.round(tests, 3), end=" ")
                print("better", (logs < first).sum(0), "worse", (logs > first).sum(0))


if __name__ == "__main__":
    command, path, *given = sys.argv[1:]
    if command == "run":
        run(Path(path), int(given[0]), given[1:])
    else:
        report(Path(path), given)
