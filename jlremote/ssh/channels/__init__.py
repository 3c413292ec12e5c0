"""SSH channels without the threads and waits of paramiko's, and the loop that serves them.

Read `event_loop` (the one thread of a forward), then `tunnel_channel` with
`channel_handler` (its events) and `channel_registry` (what the channels of a connection share),
last `session_slots` (how many sessions a connection may have).

Why at most eight terminals, followed logs, mounts and relays? sshd permits ten sessions on a
connection. If all of them were taken for hours, each further command would wait, for no reason that
it could name.
"""
