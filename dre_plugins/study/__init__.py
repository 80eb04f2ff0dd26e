"""A study without a framework: its trials, its priors and memory, what is best, when to end."""

from dre_plugins.study.ask_tell import AskTell

__all__ = ["AskTell"]
