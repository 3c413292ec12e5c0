"""The link's process: its start, its socket, and the operations that commands request.

Read `link_process` (the start, the log, and the lock, key and socket), `link_server` (a thread for
each command; the parts put together), `conversation` (one command, and the script that runs for
it), `operations` (one method for each request).
"""
