"""The checks of `jlr doctor`, in order."""
