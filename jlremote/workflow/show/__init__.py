"""What `jlr list` and `jlr status` report."""
