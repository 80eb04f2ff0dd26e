"""The rivals of the paper and of the thesis, on tables of anonymous columns.

Each has `observe_and_suggest(X_observed, y_observed, X_pending)`, as HPO-B calls it, and is made
of public libraries: BoTorch, GPyTorch, PyTorch. They are here to be compared with, not to be
tuned with.
"""
