"""The heading `Sessions`: start, open, url, list, status, logs and stop."""
