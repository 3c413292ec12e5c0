"""The link's process: its start, its socket, and what commands ask of it."""
