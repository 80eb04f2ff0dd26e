"""Adapters: a package for each framework that translates, delegates and translates back.

The same file names stand for the same jobs in all of them: `conversion` (search spaces and
values), `history` (the framework's trials as ours), `sources` (past studies as metadata), `state`
(what is saved and restored), `ending` (which trial to use, when to end).
"""
