"""The universal prior: what is learnt once, from synthetic tasks, for any search space.

`network` reads the trials of a task and proposes a mixture of Gaussian `processes`; `tasks` and
`lessons` are what it learns from in `training`; `targets` is how values are read; `file` is how it
is stored. The one that ships is `prior.safetensors`, written by `dre meta-train --synthetic`.
"""
