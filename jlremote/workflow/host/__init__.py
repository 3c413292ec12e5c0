"""A host: its link, its engine, and what a command takes back there."""
