"""Where tables come from, besides scenarios: `hpob`, `files`, `blackboxes` (of Syne Tune).

Each module has `read(sources, rest)`, which returns `MetaTables` for what follows the colon in a
name such as "hpob:5971".
"""
