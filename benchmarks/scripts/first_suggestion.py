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
dre_plugins, domains = import_module("dre_plugins"), import_module("dre_plugins.space")
prior = timed("load", dre_plugins.Prior.load, "xgboost")
space = {"eta": domains.Float(1e-3, 1.0, "log"), "max_depth": domains.Integer(1, 15)}
study = timed("align", dre_plugins.AskTell, space, seed=0, prior=prior)
for trial in range(3):
    number, configuration = timed(f"trial {trial}", study.ask)
    study.tell(number, configuration["eta"])
print(*(f"{name} {spent:.3f}" for name, spent in seconds.items()))
