"""What both sides of the socket know: messages, files, states."""
