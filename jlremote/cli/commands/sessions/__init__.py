"""The heading `Sessions`: `start`, `open` (also url), `output`, `stop`; others in `sessions`."""
