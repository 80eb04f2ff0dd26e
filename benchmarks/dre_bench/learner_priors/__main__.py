"""Train the priors of learners from the committed evaluations.

    python -m dre_bench.learner_priors --out FOLDER \
        --evaluations benchmarks/data/learner_evaluations/evaluations.npz

A prior is written only if its portfolio has beaten the library's default and space-filling points
on data sets held out, by the figures that `report` wrote, or if studies in users' spaces were
better with it than without after 1 and 5 trials, by those that `studies report` wrote; and not if
these were worse after 5 and 10. Both go into its card.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.report import Comparison
from dre_bench.learner_priors.studies import Gain
from dre_bench.learner_priors.tasks import LEARNERS
from dre_bench.learner_priors.training import train
from dre_plugins.transfer.learners import LEARNERS as RECOGNISED
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import CATALOGUE

FIGURES = Path(__file__).parents[2] / "data" / "learner_priors.json"
GAINS = Path(__file__).parents[2] / "data" / "user_spaces.json"
# These ship as meta-trained on surrogates, by `dre_bench.priors` and `networks`.
ELSEWHERE = ("decision-tree", "network", "xgboost")


def is_worth_shipping(found: Comparison, gain: Gain | None) -> bool:
    """Return whether a prior ships, by its portfolio and by studies in users' spaces."""
    if gain is None:
        return found.is_worth_shipping
    return not gain.is_worse and (found.is_worth_shipping or gain.is_worth_shipping)


def with_figures(prior: Prior, found: Comparison, gain: Gain | None) -> Prior:
    """Return a prior whose card says how good it was on data sets held out."""
    figures = {
        "data sets held out": found.n_datasets,
        "regret of the first trial": round(found.prior, 3),
        "regret of the library's default": round(found.default, 3),
        "regret of a random trial": round(found.chance, 3),
        "regret of the portfolio": round(found.best, 3),
        "regret of default and random trials": round(found.rival, 3),
        **(gain.for_card() if gain else {}),
    }
    card = replace(prior.card, validation={**prior.card.validation, **figures})
    return replace(prior, card=card)


def gains_of(path: Path = GAINS) -> dict[str, Gain]:
    """Return the gain of each prior, by its name."""
    found = json.loads(path.read_text())
    return {
        learner.prior or key: Gain(**found[key])
        for key, learner in RECOGNISED.items()
        if key in found
    }


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_bench.learner_priors", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--evaluations", type=Path, required=True, help="the exported file")
    parser.add_argument("--out", type=Path, default=CATALOGUE, help="folder of the priors")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="what `report` wrote")
    parser.add_argument("--names", nargs="*", choices=list(LEARNERS), help="which priors")
    chosen = parser.parse_args()
    datasets, tables = read_tables(chosen.evaluations)
    figures = {
        name: Comparison(**found) for name, found in json.loads(chosen.figures.read_text()).items()
    }
    gains = gains_of()
    for name in chosen.names or LEARNERS:
        if name not in figures:
            print(f"{name}: not written; its portfolio was not measured")
            continue
        gain = gains.get(name)
        if not is_worth_shipping(figures[name], gain):
            print(f"{name}: not written; neither its portfolio nor studies are better")
            continue
        prior = train(name, datasets, tables)
        if prior is None:
            continue
        path = chosen.out / f"{name}.safetensors"
        with_figures(prior, figures[name], gain).save(path)
        print(f"{path}: {path.stat().st_size / 1024:.0f} KiB", flush=True)


if __name__ == "__main__":
    main()
