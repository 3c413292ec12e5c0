"""Options of several commands: `shared`, `creation` (new containers) and `cluster` (their jobs).

`origin` has errors name an option as it was set.
"""
