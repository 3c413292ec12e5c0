"""The command's side of the link: find it or start it, and ask it."""
