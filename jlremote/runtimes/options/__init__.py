"""The options of a container: asked for, refused, and read from an existing one."""
