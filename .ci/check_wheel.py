"""Check an installed wheel in an environment that has no framework: python -I check_wheel.py."""

import subprocess
import sys
import time

LIMIT_SECONDS = 0.3
HEAVY = ("torch", "numpy", "scipy", "optuna", "ray", "syne_tune")


def import_seconds() -> float:
    """Best of five fresh interpreters, less the start of an interpreter that imports nothing."""

    def best(code: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    return best("import dre_plugins") - best("pass")


seconds = import_seconds()
print(f"import dre_plugins: {seconds:.3f} s")
assert seconds < LIMIT_SECONDS, f"slower than {LIMIT_SECONDS} s"

import dre_plugins  # noqa: E402

loaded = [name for name in HEAVY if name in sys.modules]
assert not loaded, f"import dre_plugins loads {loaded}"

try:
    from dre_plugins import DRESampler  # noqa: F401
except ImportError as error:
    assert "pip install 'dre-plugins[optuna]'" in str(error), error
else:
    raise AssertionError("DRESampler without Optuna must say what to install")

from dre_plugins.space import Float  # noqa: E402

study = dre_plugins.AskTell({"x": Float(-1.0, 1.0)}, seed=0)
for _ in range(12):
    number, configuration = study.ask()
    study.tell(number, configuration["x"] ** 2)
print(f"dre_plugins {dre_plugins.__version__}: 12 trials, best {study.best.configuration}")

prior = dre_plugins.Prior.load("xgboost")
study = dre_plugins.AskTell(prior.space, direction="maximize", seed=0, prior=prior)
print(f"prior {prior.card.name!r} of {len(prior.card.tasks)} tasks suggests {study.ask()[1]}")

done = subprocess.run(
    [sys.executable, "-I", "-m", "dre_plugins.cli", "priors", "list"],
    capture_output=True,
    text=True,
    check=True,
)
assert "xgboost" in done.stdout, done.stdout
