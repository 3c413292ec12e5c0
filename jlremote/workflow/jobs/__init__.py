"""Jobs: run, watch, list, stop."""
