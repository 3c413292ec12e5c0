"""Scripts and terminals on the host, each in a session channel.

Read `shell_session` (one script) with `script_channel` and `pieces` (what waits between two
threads); `startup_files` changes how the script gets there, `typed_text` what
its terminal is typed first, such as the password of `sudo`.

Who writes a script's output? The script's own thread, which may wait: the transport's leaves what
comes, and takes all that waits together, so one piece wakes no more programs than it must.

Why scripts are read by `sh -s`, and how `sudo` gets its password, is told in `jlremote/place/host`.
"""
