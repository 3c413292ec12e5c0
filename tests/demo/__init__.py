"""The demo: its SSH server as other people's clients see it, and `jlr demo` from end to end."""
