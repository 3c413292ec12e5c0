"""SSH channels without the threads and waits of paramiko's, and the loop that serves them.

Read `session_slots` (how many sessions a connection may have), `event_loop` with `busy_poll` (the
one thread of a forward), then `tunnel_channel` with `channel_handler` (who is told what happens)
and `channel_registry` (what the channels of a connection share), last `session_channel`.
"""
