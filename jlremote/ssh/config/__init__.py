"""The settings of a destination: `ssh -G` resolves them, this room turns them into rules.

Read `ssh_settings` (or `fallback_settings`, where `ssh` is missing), `destination`, `rules` and
`tokens`. `unsupported` lists the settings that jlr does not honour; the user is told of each.
"""
