"""Coding agents: what they are told of jlr, and tools for those that have no shell.

`jlr agent install` writes `skill.md` where an agent looks for it. `mcp_server` is `jlr mcp`. What
an agent may do is decided in `cli.leash`, for both.

Why does a tool run a command, and no story of ours? The leash, the bounds and the words of errors
are then those of the command line, and a cancelled call ends as by Ctrl-C.
"""
