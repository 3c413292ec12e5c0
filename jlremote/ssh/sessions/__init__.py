"""Scripts and terminals on the host, each in a session channel.

Read `shell_session` (one script) with `script_channel` and `deadline`; `pseudo_terminal`,
`search_path` and `sudo_password` change how the script gets there.

Why `sh -s`? The login shell may be fish or tcsh, in which POSIX quoting is injectable. A script on
stdin arrives byte by byte as it is, whatever the login shell.

How does a script get into a terminal? stdin is the person's there, so the script is on the command
line, in a form that every login shell reads alike (`pseudo_terminal`).

How does `sudo` get its password there? A terminal's script is on the command line, which other
users can see. So it prints a random marker, and the link types the password with the echo off
(`sudo_password`). Any other script gets it by a file without a name (`host/sudo.py`).
"""
