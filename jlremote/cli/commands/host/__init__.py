"""Commands about a host and its connection."""
