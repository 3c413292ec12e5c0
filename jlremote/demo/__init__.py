"""An SSH host on this machine's loopback, to try jlr without a server. Only here: asyncssh."""
