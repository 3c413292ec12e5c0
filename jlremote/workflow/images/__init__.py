"""Images on a host, and registries."""
