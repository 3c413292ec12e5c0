"""Is the server who it says it is: host keys, `known_hosts`, host certificates."""
