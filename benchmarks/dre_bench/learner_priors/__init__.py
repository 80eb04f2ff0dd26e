"""Priors of learners, made of the evaluations in `benchmarks/data/learner_evaluations`."""
