"""Records of runs as `dre-bench run` writes them, for tests of reports."""

from __future__ import annotations


def record(sampler, task, seed, values, scenario="a", **more):
    return {
        "sampler": sampler,
        "scenario": scenario,
        "task": task,
        "seed": seed,
        "trials": len(values),
        "values": list(values),
        "ask_seconds": [0.5] * len(values),
        "reference": {"median": 0.5, "best": 0.9},
        **more,
    }


def crash(sampler, task, values, scenario="a", **more):
    """Return the record of a real study."""
    study = {"problem": "crash", "stats": {}, "seconds": 1.0, **more}
    return record(sampler, task, 0, values, scenario, **study)
