"""The sampler of the package dre-plugins, as OptunaHub loads it."""

from dre_plugins import DRESampler

__all__ = ["DRESampler"]
