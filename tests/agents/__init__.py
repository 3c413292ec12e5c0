"""What agents are told, and the tools that they get."""
