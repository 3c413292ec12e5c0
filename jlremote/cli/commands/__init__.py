"""The commands, one module each, in the groups that `jlr --help` shows."""
