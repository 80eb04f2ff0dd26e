"""Tune real learners in the spaces of users, with `prior="auto"` and with other samplers.

    python -m dre_bench.learner_priors.studies run --data datasets.npz --folds FOLDER --out FILE
    python -m dre_bench.learner_priors.studies report --evaluations EXPORTED --out FILE

The data set of a study is in none of those that its prior has learnt from (`folds`). A line has
the loss of each trial by the metric of the study; run the command again to resume. It needs the
libraries of `../learner_evaluations` beside the package.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from dre_bench.learner_evaluations import datasets as archives
from dre_bench.learner_evaluations.evaluation import evaluate, mean_metric
from dre_bench.learner_evaluations.plan import DEFAULT, SOBOL
from dre_bench.learner_evaluations.records import append, read
from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.held_out import N_FOLDS
from dre_bench.learner_priors.regrets import is_of_kind, losses_of, regrets, scale_of
from dre_bench.learner_priors.tasks import SIGNS, Tables
from dre_bench.learner_priors.user_spaces import PIPELINES, SPACES, parts_of
from dre_bench.samplers import make_sampler
from dre_plugins.space import Categorical, Domain, Float, Integer, Ordinal
from dre_plugins.transfer import prior_file

SAMPLERS = {
    "auto": "dre:prior=auto",
    "universal": "dre",
    "tpe": "tpe:multivariate=True",
    "gp": "gp",
    "random": "random",
}
OTHERS = [*SAMPLERS][1:]  # which "auto" is compared with
METRICS = {"classification": ("accuracy", "log_loss"), "regression": ("rmse",)}
LOOKS = (1, 2, 5, 10, 25)
# What a card says of studies in users' spaces, by number of trials.
CARD_LOOKS = {"1": "regret of their first trial", "5": "regret after 5 trials"}
# Studies whose evaluations take long have as many trials at most.
N_EXPENSIVE = 10
EXPENSIVE = ("random_forest", "extra_trees", "mlp", "catboost")
SEED = 20261124


def sampler_of(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """Return a sampler; "auto" and "universal" are priors of `DRESampler`."""
    return make_sampler(SAMPLERS[name], seed, "")


def suggest(trial: optuna.Trial, name: str, domain: Domain) -> Any:
    """Ask a trial for a value."""
    if isinstance(domain, (Categorical, Ordinal)):
        return trial.suggest_categorical(name, domain.all_values())
    assert isinstance(domain, (Float, Integer))
    is_log = domain.scale == "log"
    if isinstance(domain, Integer):
        step = 1 if is_log else domain.step
        return trial.suggest_int(name, domain.low, domain.high, step=step, log=is_log)
    return trial.suggest_float(name, domain.low, domain.high, log=is_log)


def losses_of_study(
    title: str, archive: Path, dataset: str, metric: str, sampler: str, n: int, seed: int
) -> list[float | None]:
    """Return the loss of each trial of a study; None where the learner failed."""
    parts = {part.learner: part for part in parts_of(title)}

    def objective(trial: optuna.Trial) -> float:
        learner = next(iter(parts))
        if len(parts) > 1:
            learner = trial.suggest_categorical("learner", [*parts])
        domains = parts[learner].domains
        chosen = {name: suggest(trial, name, domain) for name, domain in domains.items()}
        configuration = parts[learner].configuration(chosen)
        found = evaluate(archive, dataset, learner, configuration)["metrics"]
        return -SIGNS[metric] * float(mean_metric(found, metric)[-1])

    n_trials = min(n, N_EXPENSIVE) if {*parts} & {*EXPENSIVE} else n
    study = optuna.create_study(sampler=sampler_of(sampler, seed))
    study.optimize(objective, n_trials=n_trials, catch=(ValueError, FloatingPointError))
    return [trial.value for trial in study.trials]


def plan(titles: Sequence[str], names: Sequence[str], rounds: range) -> Iterator[dict[str, Any]]:
    """Yield a data set and a metric for each space and round."""
    for number in rounds:
        for title in titles:
            tasks = set.intersection(*({*part.tasks} for part in parts_of(title)))
            of_tasks = [name for name in names if name.split("/")[0] in tasks]
            place = [*SPACES, *PIPELINES].index(title)
            order = np.random.default_rng([SEED, place]).permutation(len(of_tasks))
            dataset = of_tasks[order[number % len(of_tasks)]]
            metrics = METRICS[dataset.split("/")[0]]
            yield {
                "space": title,
                "dataset": dataset,
                "metric": metrics[number % len(metrics)],
                "seed": number,
            }


def run(archive: Path, folds: Path, out: Path, lines: Iterable[dict[str, Any]], n: int) -> None:
    """Append the studies that `out` does not have yet."""
    done = {key_of(line) for line in read(out)}
    names = archives.names(archive)
    for line in lines:
        if key_of(line) in done:
            continue
        prior_file.CATALOGUE = folds / str(names.index(line["dataset"]) % N_FOLDS)
        line["losses"] = losses_of_study(
            line["space"],
            archive,
            line["dataset"],
            line["metric"],
            line["sampler"],
            n,
            line["seed"],
        )
        append(out, line)


def key_of(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells a study from others."""
    return tuple(line[name] for name in ("space", "dataset", "metric", "seed", "sampler"))


# ---- report


def curves(
    lines: Sequence[Mapping[str, Any]], names: Sequence[str], tables: Tables
) -> dict[tuple[Any, ...], tuple[np.ndarray, float]]:
    """Return the regret so far after each trial, and the default's, of each study.

    The best of a data set is that of the evaluations and of all studies.
    """
    best: dict[tuple[Any, ...], float] = {}
    for line in lines:
        of = _learners(line["space"]), line["dataset"], line["metric"]
        finite = [loss for loss in line["losses"] if loss is not None]
        best[of] = min([best.get(of, np.inf), *finite])
    found = {}
    for line in lines:
        learners, dataset, metric = _learners(line["space"]), line["dataset"], line["metric"]
        losses, is_sobol, is_default = (
            np.concatenate(column)
            for column in zip(
                *(_evaluated(learner, dataset, metric, names, tables) for learner in learners),
                strict=True,
            )
        )
        if not np.isfinite(losses).any():
            continue
        least = min(float(np.nanmin(losses)), best[learners, dataset, metric])
        scale = scale_of(losses, least, is_sobol)
        if not scale:
            continue
        of_trials = np.array([np.nan if v is None else v for v in line["losses"]])
        default = float(regrets(losses[is_default], least, scale).mean())
        found[key_of(line)] = np.minimum.accumulate(regrets(of_trials, least, scale)), default
    return found


def _learners(title: str) -> tuple[str, ...]:
    return tuple(part.learner for part in parts_of(title))


def _evaluated(
    learner: str, dataset: str, metric: str, names: Sequence[str], tables: Tables
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the losses on a data set, and which are space-filling and the default."""
    table = tables[learner, dataset.split("/")[0]]
    rows = np.flatnonzero(table.dataset == names.index(dataset))
    if not len(rows):
        return np.array([]), np.array([], dtype=bool), np.array([], dtype=bool)
    is_sobol, is_default = (is_of_kind(table, rows, kind) for kind in (SOBOL, DEFAULT))
    return losses_of(table, rows)[metric], is_sobol, is_default


@dataclass(frozen=True)
class Gain:
    """Compare mean regrets of studies with "auto" and with "universal", by number of trials.

    Attributes:
        n_studies: Pairs of studies.
        auto: With the prior.
        universal: Without.
        error: Standard errors of the differences, over pairs.
    """

    n_studies: int
    auto: Mapping[str, float]
    universal: Mapping[str, float]
    error: Mapping[str, float]

    @property
    def is_worth_shipping(self) -> bool:
        """Whether regret is smaller by more than the error after 1 and after 5 trials."""
        return all(self.auto[n] + self.error[n] < self.universal[n] for n in ("1", "5"))

    @property
    def is_worse(self) -> bool:
        """Whether regret is larger by more than the error after 5 and after 10 trials."""
        return all(self.auto[n] - self.error[n] > self.universal[n] for n in ("5", "10"))

    def for_card(self) -> dict[str, float]:
        """Return what the card of a prior says of the studies."""
        figures: dict[str, float] = {"studies in users' spaces": self.n_studies}
        for look, title in CARD_LOOKS.items():
            figures[title] = round(self.auto[look], 3)
            figures[f"{title} without"] = round(self.universal[look], 3)
        return figures


def gain(auto: Sequence[np.ndarray], universal: Sequence[np.ndarray]) -> Gain:
    """Compare regrets so far `[trials]` of pairs of studies, at trials that all have reached."""
    n = min(len(regret) for regret in (*auto, *universal))
    looks = [look for look in LOOKS if look <= n]
    ours, theirs = (
        np.array([[regret[look - 1] for look in looks] for regret in regrets])
        for regrets in (auto, universal)
    )
    error = (theirs - ours).std(axis=0, ddof=min(1, len(auto) - 1)) / np.sqrt(len(auto))
    columns = (ours.mean(axis=0), theirs.mean(axis=0), error)
    figures = [
        {str(look): round(float(value), 4) for look, value in zip(looks, column, strict=True)}
        for column in columns
    ]
    return Gain(len(auto), *figures)


def report(
    lines: Sequence[Mapping[str, Any]], names: Sequence[str], tables: Tables
) -> dict[str, Gain]:
    """Print regrets by learner, by space and of all, beside each other sampler; return gains."""
    found = curves(lines, names, tables)
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for key in {key[:4] for key in found}:
        of_several = (SPACES[key[0]].key, "all") if key[0] in SPACES else ("all pipelines",)
        for title in (*of_several, key[0]):
            groups.setdefault(title, []).append(key)
    gains = {}
    for title in sorted(groups):
        for other in OTHERS:
            keys = [k for k in groups[title] if all((*k, s) in found for s in ("auto", other))]
            if not keys:
                continue
            default = np.mean([found[(*k, "auto")][1] for k in keys])
            ours, theirs = ([found[(*k, name)][0] for k in keys] for name in ("auto", other))
            of_pairs = gain(ours, theirs)
            cells = [
                f"@{look} {of_pairs.auto[look]:.3f}/{of_pairs.universal[look]:.3f} "
                f"± {of_pairs.error[look]:.3f}"
                for look in of_pairs.auto
            ]
            print(f"{title}, auto/{other}, {len(keys)}:", *cells, f"default {default:.3f}")
            if other == "universal":
                gains[title] = of_pairs
    return gains


def main() -> None:
    """Read the command line; run or report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data", type=Path, help="the archive of data sets")
    parser.add_argument("--folds", type=Path, help="what `folds` wrote")
    parser.add_argument("--evaluations", type=Path, help="the exported file")
    parser.add_argument("--out", type=Path, required=True, help="the file to add to (.jsonl)")
    parser.add_argument("--write", type=Path, help="the file of the figures (.json)")
    parser.add_argument("--learners", nargs="*", help="only spaces of these keys")
    parser.add_argument("--pipelines", action="store_true", help="choose between two learners")
    parser.add_argument("--samplers", nargs="*", choices=SAMPLERS, default=["auto", "universal"])
    parser.add_argument(
        "--rounds", type=int, nargs=2, default=(0, 4), help="first, and after last"
    )
    parser.add_argument("--trials", type=int, default=25, help="of each study")
    chosen = parser.parse_args()
    if chosen.what == "report":
        gains = report(read(chosen.out), *read_tables(chosen.evaluations))
        if chosen.write:
            figures = {title: asdict(of_pairs) for title, of_pairs in gains.items()}
            chosen.write.write_text(json.dumps(figures, indent=1) + "\n")
        return
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    titles = [t for t, s in SPACES.items() if not chosen.learners or s.key in chosen.learners]
    titles = [*PIPELINES] if chosen.pipelines else titles
    studies = plan(titles, archives.names(chosen.data), range(*chosen.rounds))
    lines = ({**study, "sampler": name} for study in studies for name in chosen.samplers)
    run(chosen.data, chosen.folds, chosen.out, lines, chosen.trials)


if __name__ == "__main__":
    main()
