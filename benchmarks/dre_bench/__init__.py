"""Tuning tasks, paired benchmark runs and their reports.

How it runs: `suites` name `problems/` (what is to be done), scenarios and samplers; `runs` does
them in processes or on a Ray cluster and appends a line to a file as each one ends; `reports/`
pair the lines and compare.

What it runs on: `tasks` (YAHPO Gym), `synthetic`, `scenarios` (by name), `tables` with
`table_sources/` (all configurations known: HPO-B, files, blackboxes of Syne Tune).

Programs of their own: `extract` and `priors` (make what ships), `speed`, `scale`,
`meta_training_speed`, `overlap`.
"""
