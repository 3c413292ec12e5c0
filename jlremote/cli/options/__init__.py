"""Options of several commands: `shared`, and `creation` (a new container, a cluster's job)."""
