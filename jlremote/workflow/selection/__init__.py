"""From a typed name to a session."""
