"""The demo's host: an SSH server on this machine's loopback, to try jlr without a server.

Read `demo` (the story of `jlr demo`), `loopback_host` (the server and its keys, the account, one
command or shell) and `own_files` (the folder of a demo, with its notebook).

Why asyncssh and not paramiko's server side? Paramiko needs threads for each channel and runs no
commands by itself; asyncssh redirects a channel to a process.

Why is only this machine reached? The demo is a server that other programs of the user may find. It
accepts one key, new for each demo, and forwards nowhere else.

Why no container? It would need an engine and an image here; `jlr start` shows it on a host.

Why has the demo a folder of its own? A demo leaves nothing behind but what the person made, and
JupyterLab in the current folder leaves its settings, checkpoints and history there and in the home
folder. It is in the folder for temporary files: there it can stay, without a move that may fail.
"""
