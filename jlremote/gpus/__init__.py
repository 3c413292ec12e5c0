"""The GPUs of a host: who uses them, and which of them a session may take."""
