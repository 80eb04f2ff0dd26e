"""Adapters: a package for each framework that converts, calls and converts back."""
