"""The link's process: its start, its socket, and the operations that commands request.

Read `process` (the start), `link_log` (its log), `link_socket` (the lock, key and socket), `server`
(a thread for each command; the parts put together), `conversation` (one command), `operations` (one
method for each request), `script_run` (a script that runs for a command).
"""
