"""SSH channels without the threads and waits of paramiko's, and the loop that serves them.

Read `event_loop` with `busy_poll` (the one thread of a forward), then `tunnel_channel` with
`channel_handler` (its events) and `channel_registry` (what the channels of a connection share),
last `session_slots` (how many sessions a connection may have).

Why at most six terminals and followed logs at once? sshd permits ten sessions on a connection. If
all of them were taken for hours, each further command would wait, for no reason that it could name.

Why does a forward's thread stay awake? A thread that was woken runs Python three times slower than
one that was not, and with a near host that was a third of a small message's time. `busy_poll` tells
when it does. A download beside such a conversation is held to 2 Gb/s, or it would take every core.
"""
