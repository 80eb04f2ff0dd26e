"""What holds for all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does; pytest-timeout is the limit.
settings.register_profile("dre_plugins", deadline=None)
settings.load_profile("dre_plugins")
