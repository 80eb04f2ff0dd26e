"""What was ever tuned here, written by every study and read by the next one."""

from dre_plugins.memory.memory import Memory

__all__ = ["Memory"]
