"""Jobs: commands that run on a host by themselves, and are watched from elsewhere."""
