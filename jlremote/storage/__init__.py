"""Where the laptop keeps what it knows: paths, settings, sessions."""
