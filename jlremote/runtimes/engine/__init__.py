"""The container engines: their commands, differences and faults."""
