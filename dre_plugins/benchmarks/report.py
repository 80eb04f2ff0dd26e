"""Tables and curves of benchmark runs: ``python -m dre_plugins.benchmarks.report runs.jsonl``.

Definitions, for one task with values that are maximised:

    normalised regret  (best - x) / (best - median) of the best value x so far. ``best`` is the
                       highest value known for the task, over all runs given and the random sample
                       of 2000 configurations that every run records; ``median`` is that sample's.
                       0 is as good as anything known, 1 is what half of random search reaches at
                       its first trial. Means go over seeds and tasks alike.
    rank               place among the samplers of the same (scenario, task, seed), 1 = best, ties
                       share their mean place; averaged.
    win/tie/loss       over tasks, by the mean regret over seeds, against one named sampler; p is
                       that of a two-sided Wilcoxon signed-rank test over the same differences.
    stagnating         share of runs that end above a regret of 0.02 and did not improve in their
                       last 20 trials.
    ask                median seconds of a suggestion after the start-up trials.

Only (scenario, task, seed) that every sampler finished are compared. Regret depends on the runs
that are given together, through ``best``.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dre_plugins.benchmarks.quality import N_STARTUP_TRIALS, Record, read_records, run_of

Floats: TypeAlias = NDArray[np.float64]
Key: TypeAlias = tuple[str, int, int]
"""Scenario, task, seed: what samplers are compared on."""

CHECKPOINTS = (20, 30, 50)
STAGNATION_TRIALS = 20
STAGNATION_REGRET = 0.02


@dataclass(frozen=True)
class Results:
    """Paired runs.

    Attributes:
        samplers: Names, in the order of axis 0.
        keys: (scenario, task, seed), in the order of axis 1.
        regret: Normalised regret of the best so far, ``[samplers, keys, trials]``.
        ask_seconds: Seconds of each suggestion, ``[samplers, keys, trials]``.
    """

    samplers: tuple[str, ...]
    keys: tuple[Key, ...]
    regret: Floats
    ask_seconds: Floats

    @property
    def scenarios(self) -> list[str]:
        """Names of the scenarios, sorted."""
        return sorted({scenario for scenario, _, _ in self.keys})

    def of_scenario(self, scenario: str) -> Results:
        """The runs of one scenario."""
        chosen = [i for i, key in enumerate(self.keys) if key[0] == scenario]
        return Results(
            self.samplers,
            tuple(self.keys[i] for i in chosen),
            self.regret[:, chosen],
            self.ask_seconds[:, chosen],
        )

    def ranks(self) -> Floats:
        """Place of each sampler at each trial, 1 = best, ``[samplers, keys, trials]``."""
        return np.asarray(stats.rankdata(self.regret, axis=0), dtype=np.float64)

    def by_task(self) -> Floats:
        """Mean regret over the seeds of each task, ``[samplers, tasks, trials]``."""
        tasks = sorted({key[:2] for key in self.keys})
        return np.stack(
            [
                self.regret[:, [i for i, key in enumerate(self.keys) if key[:2] == task]].mean(1)
                for task in tasks
            ],
            axis=1,
        )

    def stagnating(self) -> Floats:
        """Share of stagnating runs, ``[samplers]``."""
        last = self.regret[:, :, -1]
        before = self.regret[:, :, max(-STAGNATION_TRIALS - 1, -self.regret.shape[2])]
        shares: Floats = np.mean((last == before) & (last > STAGNATION_REGRET), axis=1)
        return shares

    def seconds_per_ask(self) -> Floats:
        """Median seconds of a suggestion after the start-up trials, ``[samplers]``."""
        return np.asarray(np.median(self.ask_seconds[:, :, N_STARTUP_TRIALS:], axis=(1, 2)))


def collect(records: Sequence[Record]) -> Results:
    """Arrange finished runs by sampler and key, and normalise them.

    Args:
        records: Lines of one or several runs files; failed runs are left out, and of a run that
            was finished twice the later one counts.

    Raises:
        ValueError: If no (scenario, task, seed) was finished by every sampler.
    """
    finished = {run_of(record): record for record in records if "error" not in record}
    best: dict[tuple[str, int], float] = defaultdict(lambda: -np.inf)
    for run, record in finished.items():
        task = run.scenario, run.task
        best[task] = max(best[task], record["reference"]["best"], *record["values"])

    samplers = tuple(dict.fromkeys(run.sampler for run in finished))
    table = {(run.sampler, run.scenario, run.task, run.seed): run for run in finished}
    everywhere = [
        key
        for key in sorted({key[1:] for key in table})
        if all((sampler, *key) in table for sampler in samplers)
    ]
    if not everywhere:
        raise ValueError("no (scenario, task, seed) was finished by every sampler.")
    grid = [[finished[table[(name, *key)]] for key in everywhere] for name in samplers]
    trials = min(len(record["values"]) for row in grid for record in row)
    return Results(
        samplers,
        tuple(everywhere),
        np.array(
            [
                [
                    _regret(record, best[key[:2]])[:trials]
                    for record, key in zip(row, everywhere, strict=True)
                ]
                for row in grid
            ]
        ),
        np.array([[record["ask_seconds"][:trials] for record in row] for row in grid]),
    )


def markdown(results: Results, against: str, checkpoints: Sequence[int] = CHECKPOINTS) -> str:
    """The report as Markdown tables, for all scenarios together and for each."""
    parts = [("All scenarios", results)]
    if len(results.scenarios) > 1:
        parts += [(name, results.of_scenario(name)) for name in results.scenarios]
    return "\n\n".join(_section(title, part, against, checkpoints) for title, part in parts)


def plot(results: Results, path: Path) -> None:
    """Draw mean regret against trials, one panel a scenario; bands are standard errors."""
    from matplotlib.figure import Figure

    scenarios = results.scenarios
    figure = Figure(figsize=(5.5 * len(scenarios), 4), layout="constrained")
    panels = figure.subplots(1, len(scenarios), squeeze=False)[0]
    for panel, scenario in zip(panels, scenarios, strict=True):
        _plot_panel(panel, results.of_scenario(scenario), scenario)
    panels[0].set_ylabel("normalised regret")
    panels[0].legend()
    figure.savefig(path, dpi=120)


def main(arguments: Sequence[str] | None = None) -> None:
    """Report on runs files from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, nargs="+", help="JSONL files of benchmark runs")
    parser.add_argument("--samplers", help="only these: specifications, separated by spaces")
    parser.add_argument("--against", help="sampler that the others are compared with")
    parser.add_argument(
        "--checkpoints",
        default=",".join(map(str, CHECKPOINTS)),
        help="numbers of trials to report regret and rank at",
    )
    parser.add_argument("--plot", type=Path, help="PNG file of the curves, to be written")
    options = parser.parse_args(arguments)

    records = [record for path in options.runs for record in read_records(path)]
    if options.samplers:
        chosen = options.samplers.split()
        records = [record for record in records if record["sampler"] in chosen]
    results = collect(records)
    against = options.against or results.samplers[0]
    if against not in results.samplers:
        parser.error(f"--against {against}: the runs are of {', '.join(results.samplers)}")
    print(markdown(results, against, [int(n) for n in options.checkpoints.split(",")]))
    _print_left_out(records, results)
    if options.plot and importlib.util.find_spec("matplotlib"):
        plot(results, options.plot)
    elif options.plot:
        print("\nNo curves: they need matplotlib, pip install 'dre-plugins[plots]'")


def _regret(record: Record, best: float) -> Floats:
    """Normalised regret of the best value so far, ``[trials]``."""
    scale = best - record["reference"]["median"]
    so_far = np.maximum.accumulate(record["values"])
    # A task where half of the random sample is optimal has nothing to find.
    regret: Floats = (best - so_far) / scale if scale > 0 else np.zeros_like(so_far)
    return regret


def _section(title: str, results: Results, against: str, checkpoints: Sequence[int]) -> str:
    checkpoints = [n for n in checkpoints if n <= results.regret.shape[2]]
    n_tasks = len({key[:2] for key in results.keys})
    head = [
        "sampler",
        *(f"regret@{n}" for n in checkpoints),
        *(f"rank@{n}" for n in checkpoints),
        *(f"vs {against}@{n}" for n in checkpoints),
        "stagnating",
        "ask",
    ]
    at = [n - 1 for n in checkpoints]
    regret, ranks = results.regret.mean(1)[:, at], results.ranks().mean(1)[:, at]
    by_task, rival = results.by_task()[:, :, at], results.samplers.index(against)
    rows = [
        [
            name,
            *(f"{value:.4f}" for value in regret[i]),
            *(f"{value:.2f}" for value in ranks[i]),
            *(_compare(by_task[i, :, j], by_task[rival, :, j]) for j in range(len(at))),
            f"{results.stagnating()[i]:.0%}",
            f"{results.seconds_per_ask()[i]:.3f} s",
        ]
        for i, name in enumerate(results.samplers)
    ]
    lines = [head, ["---"] * len(head), *rows]
    return f"### {title}: {n_tasks} tasks, {len(results.keys)} runs a sampler\n\n" + "\n".join(
        f"| {' | '.join(line)} |" for line in lines
    )


def _compare(regret: Floats, rival: Floats) -> str:
    """Wins, ties and losses over tasks, and the p-value of the paired Wilcoxon test."""
    difference = np.where(np.isclose(regret, rival, atol=1e-9), 0.0, regret - rival)
    if not difference.any():
        return "—"
    p = stats.wilcoxon(difference, zero_method="pratt").pvalue
    wins, losses = int(np.sum(difference < 0)), int(np.sum(difference > 0))
    return f"{wins}/{len(difference) - wins - losses}/{losses} p={p:.2g}"


def _print_left_out(records: Sequence[Record], results: Results) -> None:
    finished = {run_of(record) for record in records if "error" not in record}
    n_failed = len({run_of(record) for record in records} - finished)
    n_unpaired = len(finished) - len(results.samplers) * len(results.keys)
    if n_failed or n_unpaired:
        print(f"\nLeft out: {n_failed} failed runs, {n_unpaired} runs without their pair.")


def _plot_panel(panel: Any, results: Results, title: str) -> None:
    by_task = results.by_task()
    trials = np.arange(1, by_task.shape[2] + 1)
    for name, curves in zip(results.samplers, by_task, strict=True):
        mean, error = curves.mean(0), curves.std(0) / np.sqrt(len(curves))
        (line,) = panel.plot(trials, mean, label=name)
        panel.fill_between(trials, mean - error, mean + error, alpha=0.15, color=line.get_color())
    panel.set(title=title, xlabel="trials", yscale="log")


if __name__ == "__main__":
    main()
