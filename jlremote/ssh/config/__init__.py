"""Whom to reach, and how: what `ssh -G` says about a destination."""
