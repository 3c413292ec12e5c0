"""Commands and terminals over an SSH connection."""
