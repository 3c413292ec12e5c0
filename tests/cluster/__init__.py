"""jlr on the lab's cluster."""
