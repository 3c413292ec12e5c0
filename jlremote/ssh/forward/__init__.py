"""From a local port to the far end: sockets, the relay into a container, SFTP."""
