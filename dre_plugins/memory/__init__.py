"""The memory: records of studies, from which later studies learn."""

from dre_plugins.memory.memory import Memory

__all__ = ["Memory"]
