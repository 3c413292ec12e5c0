"""Options of several commands: `shared`, `container_flags` and `cluster` (jobs of a scheduler)."""
