"""Scripts and terminals on the host, each in a session channel.

Read `shell_session` (one script) with `script_channel` and `deadline`; `pseudo_terminal`,
`startup_files` and `sudo_password` change how the script gets there, `typed_text` what its terminal
is typed first.

Who writes a script's output? The transport's thread, as long as its reader keeps up; else the
script's own, which alone may wait.

Why scripts are read by `sh -s`, and how `sudo` gets its password, is told in `jlremote/host`.
"""
