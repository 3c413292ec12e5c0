"""The command line: the only room that prints, asks, and imports click and rich.

Read `boundary` (errors become messages and exit codes), `program` (the table of commands) and
`command` (click's classes with our additions), `leash` (what an agent may do); then one of
`commands/`. `options/` has what several commands share, `screen/` the output, `keyboard/` the
input, `completion/` the shells' candidates. `kernel_program` is what a kernel spec names.

Why is a command imported only when it is called? `jlr --version` and a completion should cost
little more than `import click`; `tests/bench/startup.py` measures it, at most 1.5 times.

Why rich? Steps and live tables need a cursor that moves, which rich knows for every terminal. It
takes 60 ms to import, so only what draws imports it.

How does a command end? A `JlrError` has its own exit code. Anything else is a bug: exit code 3, a
short message, and a log without arguments and local variables, which may hold secrets.
"""
