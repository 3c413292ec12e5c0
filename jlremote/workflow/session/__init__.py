"""Sessions: start, open, use, stop."""
