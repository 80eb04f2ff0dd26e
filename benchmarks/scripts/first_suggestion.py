"""Print the seconds until the first suggestion in a fresh process, by part.

python benchmarks/scripts/first_suggestion.py
"""

import time
from importlib import import_module

seconds = {}


def timed(name, function, *arguments, **options):
    start = time.perf_counter()
    result = function(*arguments, **options)
    seconds[name] = time.perf_counter() - start
    return result


for name in ("numpy", "scipy.stats", "torch", "dre_plugins.transfer.prior"):
    timed(name, import_module, name)
from dre_plugins import AskTell, Prior
from dre_plugins.space import Float, Integer

prior = timed("load", Prior.load, "xgboost")
space = {"eta": Float(1e-3, 1.0, "log"), "max_depth": Integer(1, 15)}
study = timed("align", AskTell, space, seed=0, prior=prior)
for trial in range(3):
    number, configuration = timed(f"trial {trial}", study.ask)
    study.tell(number, configuration["eta"])
print(*(f"{name} {spent:.3f}" for name, spent in seconds.items()))
