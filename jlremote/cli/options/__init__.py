"""Options of several commands: `shared`, `new_container` and `cluster` (jobs of a scheduler)."""
