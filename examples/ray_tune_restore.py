"""Kill an experiment of Ray Tune and restore it: it goes on, and no configuration repeats."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ray
from ray import tune

from dre_plugins import DRESearch


def train(config: dict) -> dict:
    time.sleep(1)
    return {"loss": (config["x"] - 0.3) ** 2 + config["depth"] / 10}


if len(sys.argv) > 1:  # the first driver, which is going to be killed
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1"  # every 10 seconds by default
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    config = tune.TuneConfig(metric="loss", mode="min", num_samples=10, reuse_actors=True)
    config.search_alg = DRESearch(seed=0)
    space = {"x": tune.uniform(0, 1), "depth": tune.randint(1, 8)}
    run = tune.RunConfig(storage_path=sys.argv[1], name="study", verbose=0)
    tune.Tuner(train, param_space=space, tune_config=config, run_config=run).fit()
else:
    folder = Path(tempfile.mkdtemp())
    driver = subprocess.Popen([sys.executable, __file__, folder], start_new_session=True)
    while len(list(folder.glob("study/train_*/result.json"))) < 6:
        if driver.poll() is not None:
            sys.exit("The first driver has ended by itself.")
        time.sleep(0.2)
    time.sleep(0.5)  # while Ray copies its own state it cannot be killed without harm
    os.killpg(driver.pid, signal.SIGKILL)
    print("killed after five trials")
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    results = tune.Tuner.restore(str(folder / "study"), trainable=train).fit()
    print(f"{len(results)} trials, {len({r.config['x'] for r in results})} of them different")
    print(f"best loss {results.get_best_result().metrics['loss']:.4f}")
