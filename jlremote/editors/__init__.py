"""Ssh clients and editors of this laptop, on the link's own SSH server.

Read `proxy` (what `cont1.jlr` means, and `jlr proxy`, which ssh runs for such a name),
then `ssh_config` (the block that makes ssh run it, whatever the user's own `Host *` says) and
`code` (an editor on a session's folder). `editor_keys` lets these clients in; the server is in
`link/ssh_server`.

Why names below `.jlr`? No public name ends so, and one pattern in `~/.ssh/config` has all of them:
a name that no file knows works, too. The lines by which shells complete known names are beside it.
"""
