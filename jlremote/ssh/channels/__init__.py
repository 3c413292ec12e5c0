"""SSH channels without the threads and waits of paramiko's, the loop that serves them, and scripts.

Read `event_loop` (the one thread of a forward), then `tunnel_channel` and `channel_registry` (what
the channels of a connection share, and how many sessions it may have). A script or terminal on the
host is a `shell_session`, over a channel of `session_channel`.

Why at most eight terminals, followed logs, mounts and relays? sshd permits ten sessions on a
connection. If all of them were taken for hours, each further command would wait, for no reason that
it could name.

Who writes a script's output? The script's own thread, which may wait: the transport's leaves what
comes, and takes all that waits together, so one piece wakes no more programs than it must.

Why scripts are read by `sh -s`, and how `sudo` gets its password, is told in `jlremote/place/host`.
"""
