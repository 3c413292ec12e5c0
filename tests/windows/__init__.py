"""The story on Windows: its own Python, jlr and its wheels under Wine, against the lab's host."""
