"""Tuning tasks, paired benchmark runs and their reports.

How it runs: `suites` name `problems/` (what is to be done), scenarios and samplers; `runs` does
them in processes and appends a line to a file as each one ends; `reports/` pair the lines and
compare.

What it runs on: `tasks` (YAHPO Gym), `synthetic`, `scenarios` (by name), `tables` (all
configurations known: of scenarios and of HPO-B).

Programs of their own: `gate`, `extract` and `priors` (make what ships), `speed`, `costs`,
`scale`, `calibration`. `rivals/` are the paper's, on tables; `learner_evaluations/` makes
metadata.
"""
