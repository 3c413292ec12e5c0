"""Options of several commands: `shared`, `creation` (new containers) and `cluster` (their jobs)."""
