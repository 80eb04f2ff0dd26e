"""What `prior="auto"` costs where the names of the parameters mislead.

    python -m dre_bench.learner_priors.harm --out harm.jsonl --pairs 90

Studies of random bowls whose parameters are named like those of a learner: a prior is recognised
and wrong. Each is run with "auto" and with "universal"; run the command again to resume. A line
has the best regret so far after each trial, where the bowl is 1 on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import optuna

from dre_bench.learner_evaluations.records import append, read
from dre_bench.learner_priors.studies import sampler_of, suggest
from dre_plugins.space import Domain, Float, Integer
from dre_plugins.space.search_space import SearchSpace

N_TRIALS = 50
LOOKS = (1, 5, 10, 25, 50)
# Added to regrets before their logarithms are taken: smaller ones are all the same.
LEAST = 1e-6
SHARE, RATE = Float(0.4, 1.0), Float(1e-3, 0.3, "log")
SPACES: Mapping[str, Mapping[str, Domain]] = {
    "lightgbm": {
        "learning_rate": RATE,
        "num_leaves": Integer(4, 256, "log"),
        "min_child_samples": Integer(5, 100, "log"),
        "subsample": SHARE,
        "colsample_bytree": SHARE,
        "reg_lambda": Float(1e-3, 100.0, "log"),
    },
    "network": {
        "learning_rate": Float(1e-4, 0.1, "log"),
        "batch_size": Integer(16, 512, "log"),
        "weight_decay": Float(1e-5, 0.1, "log"),
        "dropout": Float(0.0, 0.8),
    },
    "xgboost": {
        "eta": RATE,
        "max_depth": Integer(2, 12),
        "alpha": Float(1e-6, 10.0, "log"),
        "min_child_weight": Float(1e-2, 50.0, "log"),
        "subsample": SHARE,
    },
    "elastic-net": {"alpha": Float(1e-5, 10.0, "log"), "l1_ratio": Float(0.0, 1.0)},
    "extra-trees": {
        "et_max_depth": Integer(2, 30, "log"),
        "et_max_features": Float(0.05, 1.0, "log"),
        "et_min_samples_leaf": Integer(1, 50, "log"),
    },
    "catboost": {
        "iterations": Integer(50, 1000, "log"),
        "learning_rate": RATE,
        "depth": Integer(2, 10),
        "l2_leaf_reg": Float(0.1, 100.0, "log"),
    },
    "hist-gradient-boosting": {
        "max_iter": Integer(20, 500, "log"),
        "learning_rate": RATE,
        "max_leaf_nodes": Integer(4, 256, "log"),
        "min_samples_leaf": Integer(2, 100, "log"),
        "l2_regularization": Float(1e-4, 100.0, "log"),
    },
    "mlp": {
        "mlp__alpha": Float(1e-6, 1.0, "log"),
        "mlp__learning_rate_init": Float(1e-4, 0.1, "log"),
        "mlp__batch_size": Integer(16, 256, "log"),
    },
}


def best_so_far(title: str, prior: str, seed: int) -> list[float]:
    """Run a study and return its best regret after each trial."""
    space = SearchSpace(SPACES[title])
    rng = np.random.default_rng(seed)
    optimum = rng.random(space.n_parameters)
    weights = rng.dirichlet(np.ones(space.n_parameters))

    def objective(trial: optuna.Trial) -> float:
        chosen = {name: suggest(trial, name, domain) for name, domain in space.domains.items()}
        return float(weights @ np.square(space.to_units([chosen])[0] - optimum) * 6.0)

    study = optuna.create_study(sampler=sampler_of(prior, seed))
    study.optimize(objective, n_trials=N_TRIALS)
    values = [float(trial.value or 0.0) for trial in study.trials]
    return [min(values[: n + 1]) for n in range(N_TRIALS)]


def report(pairs: np.ndarray) -> None:
    """Print mean regrets of both, `[2, pairs, N_TRIALS]`, and their ratio with its error.

    A few pairs decide the ratio of small means, so that the geometric mean of ratios is printed
    as well, with the factor that is its standard error.
    """
    drawn = np.random.default_rng(0).integers(pairs.shape[1], size=(2000, pairs.shape[1]))
    for look in LOOKS:
        auto, universal = pairs[:, :, look - 1]
        ratios = auto[drawn].mean(1) / universal[drawn].mean(1)
        logs = np.log((auto + LEAST) / (universal + LEAST))
        factor = np.exp(logs.std(ddof=1) / np.sqrt(len(logs)))
        print(
            f"@{look}: {auto.mean():.4f}, {universal.mean():.4f} without, ratio "
            f"{auto.mean() / universal.mean():.3f} ± {ratios.std():.3f}, geometric "
            f"{np.exp(logs.mean()):.3f} ×/÷ {factor:.3f}; better in "
            f"{(auto < universal).sum()}, worse in {(auto > universal).sum()}"
        )


def main() -> None:
    """Read the command line, run what is missing, and print means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the file to add to (.jsonl)")
    parser.add_argument("--pairs", type=int, default=90, help="studies of each kind")
    chosen = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    done = {(line["prior"], line["seed"]): line["regret"] for line in read(chosen.out)}
    for seed in range(chosen.pairs):
        title = [*SPACES][seed % len(SPACES)]
        for prior in ("auto", "universal"):
            if (prior, seed) not in done:
                done[prior, seed] = best_so_far(title, prior, seed)
                line = {"space": title, "prior": prior, "seed": seed}
                append(chosen.out, {**line, "regret": done[prior, seed]})
    seeds = range(chosen.pairs)
    pairs = np.array([[done[prior, s] for s in seeds] for prior in ("auto", "universal")])
    for place, title in enumerate(SPACES):
        print(title)
        report(pairs[:, place :: len(SPACES)])
    print("all")
    report(pairs)


if __name__ == "__main__":
    main()
