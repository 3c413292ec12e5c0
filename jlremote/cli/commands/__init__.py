"""The commands, a module or a folder for each heading of `jlr --help`.

A command parses, calls one workflow, and prints. It imports the workflow inside its function, so
that its help and its completion stay fast. Read `sessions/` first, then `work/`, `images` with
`registry`, `host` and `machine`; `program` names every command's module.
"""
