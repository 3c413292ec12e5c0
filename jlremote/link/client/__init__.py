"""The command's side of the link: find it or start it, and send it requests.

Read `link` (what a command can ask for), `call` (a request and its answer, the search for
the link and its start), then `remote_process` (a script with its bytes, or its text). Nothing here
imports `ssh/`: loading that would cost every command two tenths of a second.
"""
