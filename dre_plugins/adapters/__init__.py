"""Adapters: one thin file per framework, that translates, delegates and translates back."""
