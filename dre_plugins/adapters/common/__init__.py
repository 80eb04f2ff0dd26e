"""What the adapters of several frameworks do alike; nothing here names a framework."""
