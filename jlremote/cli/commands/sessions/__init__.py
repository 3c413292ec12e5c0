"""The heading `Sessions`: `start`, `open` (also url), and in `sessions` the other commands."""
