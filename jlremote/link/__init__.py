"""The link: one background process per host that owns the SSH connection to it."""
