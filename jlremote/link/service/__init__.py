"""The link's process: its start, its socket, and the operations that commands request.

Read `process` (the start), `surroundings` (what it lets go of), `link_log` (its log), `link_socket`
(the lock, key and socket), `server` (a thread for each command; the parts put together),
`conversation` (one command), `operations` (one method for each request), `script_run` (a script
that runs for a command).
"""
