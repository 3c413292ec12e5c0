"""Forwards of sessions: local ports, answers, restoring."""
