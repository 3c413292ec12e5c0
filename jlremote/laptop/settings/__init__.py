"""Settings: what the user has set in `config.toml` and `JLR_…`.

Read `options` (the table of all options and their values), then `settings` (the sources, and which
one wins) and `setting_change` (`jlr config` writes one).

Decisions:

**Why are the keys of the file the names of the long options?** There is one name to learn, and
`jlr config` can show where each value comes from.
"""
