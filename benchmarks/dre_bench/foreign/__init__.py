"""Rivals that run in an environment of their own, because their libraries do not fit into ours.

`serve.py` answers JSON lines in that environment, by a `Searcher` of one of the `with_*.py`; none
of them imports anything of ours. `problems.foreign` starts and drives them. A searcher is made of
the parameters of a task as plain dictionaries (the fields of `tasks.Parameter`), and has `ask(n)`,
which returns n configurations or fewer, and `tell(values)` of those; large values are good.

What they can express: SMAC is told of all conditions, Ax of those on one value of a parent. HEBO
and Syne Tune are told of none. Inactive parameters that are chosen all the same do not reach the
objective. `lab/transfer_rivals.py` tells Ax's `BOTL` and two methods of Syne Tune of past studies.
"""
