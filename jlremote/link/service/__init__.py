"""The link's process: its start, its socket, and the operations that commands request.

Read `process` (the start), `link_socket` (the lock, key and socket), `assembly` (the parts put
together), `server` (a thread for each command), `conversation` (one command), `operations` (one
method for each request), `script_run` (a script that runs for a command).
"""
