"""The heading `Sessions`: `start`, `open` (also url), `output`; in `sessions` the others."""
