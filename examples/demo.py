"""Tune a pipeline that chooses its own classifier, and compare the samplers of Optuna on it.

The problem: tell odd handwritten digits from even ones (300 of those that ship with scikit-learn).
Each trial chooses a scaling, a classifier (support vectors, a random forest or boosted trees) and
the parameters that only this classifier has. Its value is the accuracy in 3-fold cross-validation.
It was chosen because a trial takes a tenth of a second, before any sampler was compared on it.

The comparison: every sampler has its default settings, its own first trials and a study for each
seed. DRESampler is there twice: with nothing but the study, and with `past_studies`, in which the
same pipeline was tuned for four other questions, each with 300 images of its own (by DRESampler
without a past, with half as many trials again). GPSampler models only the parameters that all
trials have, and draws those of the classifiers at random.

    python examples/demo.py [--seeds 6] [--trials 40] [--jobs 2] [--picture demo.png] [--quick]
"""

import argparse
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import optuna
from matplotlib.figure import Figure
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from dre_plugins import DRESampler

TASK = "odd digits"
QUESTIONS = {  # the digits that are told from the others
    TASK: (1, 3, 5, 7, 9),
    "digits above four": (5, 6, 7, 8, 9),
    "prime digits": (2, 3, 5, 7),
    "multiples of three": (0, 3, 6, 9),
    "digits with a loop": (0, 6, 8, 9),
}
PAST = tuple(QUESTIONS)[1:]
N_IMAGES = 300
PAST_LENGTH = 1.5  # trials of a past study for each trial of the present ones
WITH_PAST = "DRE, past studies"
# Colours of Okabe and Ito, which colour-blind people tell apart.
COLOURS = {
    "Random": "#7f7f7f",
    "TPE": "#E69F00",
    "GP": "#009E73",
    "DRE": "#56B4E9",
    WITH_PAST: "#0072B2",
}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
SCALERS = {"none": FunctionTransformer, "standard": StandardScaler, "min-max": MinMaxScaler}


class Run(NamedTuple):
    """Hold the best accuracy after each trial, and the seconds of each suggestion."""

    best: list[float]
    seconds: list[float]


# ---- the problem


@cache
def data_of(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features `[N, D]` and two classes `[N]` of a question; no two share an image."""
    X, digits = load_digits(return_X_y=True)
    first = N_IMAGES * list(QUESTIONS).index(task)
    images = np.random.default_rng(0).permutation(len(X))[first : first + N_IMAGES]
    return X[images], np.isin(digits[images], QUESTIONS[task]).astype(int)


def suggest_pipeline(trial: optuna.Trial) -> BaseEstimator:
    """Build the pipeline that a trial proposes."""
    scaler = SCALERS[trial.suggest_categorical("scaling", list(SCALERS))]()
    classifier = trial.suggest_categorical("classifier", ["svc", "forest", "boosting"])
    if classifier == "svc":
        model = SVC(
            C=trial.suggest_float("svc_c", 1e-2, 1e3, log=True),
            gamma=trial.suggest_float("svc_gamma", 1e-5, 1e1, log=True),
            max_iter=5000,
        )
    elif classifier == "forest":
        model = RandomForestClassifier(
            n_estimators=trial.suggest_int("forest_trees", 5, 30, log=True),
            max_features=trial.suggest_float("forest_features", 0.05, 1.0),
            min_samples_leaf=trial.suggest_int("forest_leaf", 1, 20, log=True),
            criterion=trial.suggest_categorical("forest_criterion", ["gini", "entropy"]),
            random_state=0,
        )
    else:
        model = HistGradientBoostingClassifier(
            learning_rate=trial.suggest_float("boosting_rate", 0.01, 1.0, log=True),
            max_iter=trial.suggest_int("boosting_trees", 10, 40, log=True),
            max_leaf_nodes=trial.suggest_int("boosting_leaves", 3, 31, log=True),
            min_samples_leaf=trial.suggest_int("boosting_leaf", 2, 40, log=True),
            l2_regularization=trial.suggest_float("boosting_l2", 1e-3, 10.0, log=True),
            early_stopping=False,
            random_state=0,
        )
    return make_pipeline(scaler, model)


def accuracy(pipeline: BaseEstimator, task: str) -> float:
    """Return the accuracy in 3-fold cross-validation, 1 at best."""
    X, y = data_of(task)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return round(float(cross_val_score(pipeline, X, y, cv=folds, scoring="accuracy").mean()), 5)


# ---- the studies


def sampler_of(name: str, seed: int, past: Sequence[optuna.Study]) -> BaseSampler:
    """Build a sampler at its defaults."""
    makers: dict[str, Callable[[], BaseSampler]] = {
        "Random": lambda: RandomSampler(seed=seed),
        "TPE": lambda: TPESampler(seed=seed),
        "GP": lambda: GPSampler(seed=seed),
        "DRE": lambda: DRESampler(seed=seed, prior="universal"),
        WITH_PAST: lambda: DRESampler(seed=seed, past_studies=past),
    }
    return makers[name]()


def start_worker(n_done: "multiprocessing.sharedctypes.Synchronized") -> None:
    """Prepare a process: what it counts trials in, and what it does not say."""
    global N_DONE
    N_DONE = n_done
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", ConvergenceWarning)  # a bad configuration, seen as such
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


def tune(study: optuna.Study, task: str, n_trials: int) -> Run:
    """Run the trials of a study."""
    best, seconds = [], []
    for _ in range(n_trials):
        start = time.perf_counter()
        trial = study.ask()
        pipeline = suggest_pipeline(trial)
        seconds.append(time.perf_counter() - start)
        study.tell(trial, accuracy(pipeline, task))
        best.append(study.best_value)
        with N_DONE.get_lock():
            N_DONE.value += 1
    return Run(best, seconds)


def past_study(task: str, n_trials: int) -> optuna.Study:
    """Return a finished study of the same pipeline on another data set."""
    sampler = DRESampler(seed=list(QUESTIONS).index(task))
    study = optuna.create_study(study_name=task, direction="maximize", sampler=sampler)
    tune(study, task, n_trials)
    return study


def present_study(name: str, seed: int, n_trials: int, past: Sequence[optuna.Study]) -> Run:
    """Tune the present problem with one sampler and seed."""
    sampler = sampler_of(name, seed, past)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    return tune(study, TASK, n_trials)


def run_all(n_seeds: int, n_trials: int, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return best values so far and seconds of suggestions, `[samplers, seeds, trials]`."""
    os.environ.update(ONE_THREAD)  # read by numpy and torch when the new processes import them
    context = multiprocessing.get_context("spawn")
    n_done = context.Value("i", 0)
    console = Console()
    columns = (
        TextColumn("{task.description:22}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
    )
    with (
        ProcessPoolExecutor(n_jobs, context, start_worker, (n_done,)) as pool,
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
    ):
        n_studies = len(COLOURS) * n_seeds
        n_past_trials = round(PAST_LENGTH * n_trials)
        total = len(PAST) * n_past_trials + n_studies * n_trials
        bar = progress.add_task("tuning the past", total=total)

        def results_of(futures: list) -> list:
            left = set(futures)
            while left:
                _, left = wait(left, timeout=0.2)
                progress.update(bar, completed=n_done.value)
            return [future.result() for future in futures]

        past = results_of([pool.submit(past_study, task, n_past_trials) for task in PAST])
        progress.update(bar, description=f"tuning {TASK}")
        runs = results_of(
            [
                pool.submit(present_study, name, seed, n_trials, past)
                for name in COLOURS
                for seed in range(n_seeds)
            ]
        )
    shape = len(COLOURS), n_seeds, n_trials
    best, seconds = ([getattr(run, name) for run in runs] for name in Run._fields)
    return np.reshape(best, shape), np.reshape(seconds, shape)


# ---- what came out


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and its standard error over axis 0, the seeds."""
    return values.mean(0), values.std(0) / np.sqrt(max(len(values) - 1, 1))


def verdict(best: np.ndarray) -> str:
    """Say how all samplers ended, the best first, and which of them differ from the best.

    Args:
        best: Best values so far `[samplers, seeds, trials]`.
    """
    finals = dict(zip(COLOURS, best[:, :, -1], strict=True))
    order = sorted(finals, key=lambda name: -finals[name].mean())
    parts = []
    for name in order:
        gap, error = mean_and_error(finals[order[0]] - finals[name])
        differs = f", {gap:.4f} ± {error:.4f} behind" if name != order[0] else ""
        parts.append(f"{name} {finals[name].mean():.4f}{differs}")
    n_seeds, n_trials = best.shape[1:]
    return (
        f"Mean best accuracy after {n_trials} trials, {n_seeds} seeds, the best first "
        f"(differences paired by seed, ± standard error): {'; '.join(parts)}."
    )


def report(best: np.ndarray, seconds: np.ndarray) -> None:
    """Print a table of all samplers: means over seeds, rank of the end, seconds a suggestion."""
    n_seeds, n_trials = best.shape[1:]
    checkpoints = [n for n in (1, 5, 10, 20) if n < n_trials] + [n_trials]
    title = f"{TASK}: mean best accuracy of {n_seeds} seeds after … trials"
    headers = "", *map(str, checkpoints), "rank", "s each"
    columns = (Column(header, no_wrap=True) for header in headers)
    table = Table(*columns, title=title, box=SIMPLE_HEAD, pad_edge=False)
    ranks = rankdata(-best[:, :, -1], axis=0).mean(1)
    for name, curves, rank, times in zip(COLOURS, best, ranks, seconds, strict=True):
        cells = [f"{curves[:, n - 1].mean():.4f}" for n in checkpoints]
        table.add_row(name, *cells, f"{rank:.2f}", f"{times.mean():.3f}")
    Console().print(table)


def draw(best: np.ndarray, path: str) -> None:
    """Draw the mean curves, with the names at their ends."""
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    trials = np.arange(1, best.shape[2] + 1)
    for colour, name, curves in zip(COLOURS.values(), COLOURS, best, strict=True):
        mean, error = mean_and_error(1.0 - curves)
        axes.plot(trials, mean, color=colour, linewidth=2.5 if name in ("DRE", WITH_PAST) else 1.5)
        axes.fill_between(trials, mean - error, mean + error, color=colour, alpha=0.12)
    axes.set_yscale("log")
    ends = np.log10(1.0 - best[:, :, -1].mean(1))
    for colour, name, end, height in zip(
        COLOURS.values(), COLOURS, ends, spread(ends, axes.get_ylim()), strict=True
    ):
        axes.annotate(
            name,
            (trials[-1], 10**end),
            xytext=(1.03, 10**height),
            textcoords=("axes fraction", "data"),
            color=colour,
            va="center",
            fontweight="bold",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6},
        )
    axes.set_xlim(1, trials[-1])
    axes.set_title(f"A pipeline for {TASK}: {best.shape[1]} seeds, mean ± standard error")
    axes.set_xlabel("trials")
    axes.set_ylabel("error rate of the best trial so far (low is good)")
    axes.grid(alpha=0.3, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def spread(ends: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    """Return heights `[L]` of labels at line ends, far enough apart to be read.

    Args:
        ends: Logarithms of the last values `[L]`.
        limits: The range of the axis, on which a label is a twentieth high.
    """
    gap = (np.log10(limits[1]) - np.log10(limits[0])) / 18
    heights = ends.copy()
    order = np.argsort(ends)
    for lower, upper in pairwise(order):
        heights[upper] = max(heights[upper], heights[lower] + gap)
    return heights


def main() -> None:
    """Run the studies, draw the curves and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--picture", default="demo.png")
    parser.add_argument("--quick", action="store_true", help="1 seed, studies of 6 trials")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.trials = 1, 6
    if min(options.seeds, options.trials, options.jobs) < 1:
        parser.error("at least 1 seed, 1 trial and 1 job are needed")

    best, seconds = run_all(options.seeds, options.trials, options.jobs)
    report(best, seconds)
    draw(best, options.picture)
    print(f"picture: {options.picture}")
    print(verdict(best))


if __name__ == "__main__":
    main()
