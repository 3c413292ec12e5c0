"""The settings of a destination: `ssh -G` resolves them, this room turns them into rules.

Read `ssh_settings`, `destination` and `tokens`. The user is told of each setting that jlr
does not honour (`ssh_settings.remarks`).
"""
