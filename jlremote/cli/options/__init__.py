"""Options that several commands share: `shared`, and `creation` for new containers."""
