"""Real tuning tasks, paired benchmark runs and their reports.

Modules:
    tasks: YAHPO Gym surrogates as tuning tasks, and the small extract that the repository ships.
    extract: makes that extract from the full data.
    quality: search quality, paired runs of samplers: ``python -m dre_plugins.benchmarks.quality``.
    report: tables and curves of these runs: ``python -m dre_plugins.benchmarks.report``.
"""
