"""What holds for all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does; pytest-timeout is the limit.
settings.register_profile("dre_plugins", deadline=None)
# `make fuzz`: a hundred times as many, so that one file of a kind is damaged in 10 000 ways.
settings.register_profile("fuzz", deadline=None, max_examples=10_000)
settings.load_profile("dre_plugins")
