"""Settings: what the user has set in `config.toml` and `JLR_…`, and which hosts ssh's config names.

Read `options` (the table of all options and their values), then `settings` (the sources, and which
one wins) and `setting_change` (`jlr config` writes one). `ssh_hosts` reads names only, for
completion and guesses; `ssh/config` asks ssh for their settings.

Decisions:

**Why are the keys of the file the names of the long options?** There is one name to learn, and
`jlr config` can show where each value comes from.
"""
