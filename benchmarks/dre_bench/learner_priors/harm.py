"""What `prior="auto"` costs where the names of the parameters mislead.

    python -m dre_bench.learner_priors.harm --out harm.jsonl --pairs 12

Studies of random bowls whose parameters are named like LightGBM's: the prior is recognised and
wrong. Each is run with "auto" and with "universal"; run the command again to resume. A line has
the best regret so far after each trial, where the bowl is between 0 and 1 on average.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from dre_plugins import AskTell
from dre_plugins.recommend.prior import UNIVERSAL
from dre_plugins.space import Domain, Float, Integer
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.recognition import AutoPrior

N_TRIALS = 25
LOOKS = (1, 5, 10, 25)
SPACE: dict[str, Domain] = {
    "learning_rate": Float(1e-3, 0.3, "log"),
    "num_leaves": Integer(4, 256, "log"),
    "min_child_samples": Integer(5, 100, "log"),
    "subsample": Float(0.4, 1.0),
    "colsample_bytree": Float(0.4, 1.0),
    "reg_lambda": Float(1e-3, 100.0, "log"),
}


def best_so_far(prior: str, seed: int) -> list[float]:
    """Run a study and return its best regret after each trial."""
    space = SearchSpace(SPACE)
    rng = np.random.default_rng(seed)
    optimum, weights = rng.random(len(SPACE)), rng.dirichlet(np.ones(len(SPACE)))
    study = AskTell(space, seed=seed, prior=AutoPrior() if prior == "auto" else UNIVERSAL)
    found = []
    for _ in range(N_TRIALS):
        number, configuration = study.ask()
        units = space.to_units([configuration])[0]
        found.append(float(weights @ np.square(units - optimum) * 6.0))
        study.tell(number, found[-1])
    return [min(found[: n + 1]) for n in range(N_TRIALS)]


def main() -> None:
    """Read the command line, run what is missing, and print means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the file to add to (.jsonl)")
    parser.add_argument("--pairs", type=int, default=12, help="studies of each kind")
    chosen = parser.parse_args()
    done: dict[tuple[str, int], list[float]] = {}
    if chosen.out.exists():
        for text in chosen.out.read_text().splitlines():
            line = json.loads(text)
            done[line["prior"], line["seed"]] = line["regret"]
    for seed in range(chosen.pairs):
        for prior in ("auto", UNIVERSAL):
            if (prior, seed) not in done:
                done[prior, seed] = best_so_far(prior, seed)
                line = {"prior": prior, "seed": seed, "regret": done[prior, seed]}
                with chosen.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    for prior in ("auto", UNIVERSAL):
        regret = np.array([done[prior, seed] for seed in range(chosen.pairs)])
        means = ", ".join(f"{regret[:, look - 1].mean():.4f} @{look}" for look in LOOKS)
        print(f"{prior}: {means}")


if __name__ == "__main__":
    main()
