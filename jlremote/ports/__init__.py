"""Further ports of a session: what listens there, whose it is, and how the host reaches it."""
