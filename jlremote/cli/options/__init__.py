"""Options that several commands share: `shared`, `engine`, `creation` and `browser`."""
