"""Tuning tasks, paired benchmark runs and their reports.

What runs: `quality` (samplers on scenarios), `studies` (constraints, objectives, fidelities,
workers), `table` (the paper's protocol), `hpob`, `framework_quality` (real tuners of Ray Tune and
Syne Tune), `speed`, `meta_training_speed`, `ablations`, `overlap`.

What it runs on: `tasks` (YAHPO Gym), `synthetic`, `scenarios` (by name), `suites` (named sets),
`extract` and `priors` (make what ships).

What is reported: `report` (text, page and figures) from `results` (paired arrays), `statistics`,
`summary` (in words), `figures`, `page`, `published` (curves of HPO-B); `studies_report`.
"""
