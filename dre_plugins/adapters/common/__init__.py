"""Code that several adapters share; nothing here names a framework."""
