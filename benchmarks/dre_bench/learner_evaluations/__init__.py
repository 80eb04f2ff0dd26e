"""Evaluations of real learners on real tabular data sets: README.md has the commands."""
