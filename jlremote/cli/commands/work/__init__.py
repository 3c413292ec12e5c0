"""Commands that work in a session, or beside it."""
