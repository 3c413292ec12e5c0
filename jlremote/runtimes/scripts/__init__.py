"""Scripts that run inside a container."""
