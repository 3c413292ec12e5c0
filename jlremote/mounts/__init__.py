"""Remote folders on the laptop: sshfs, whose bytes travel over the link's own connection.

Read `mount` (also which folder of the host is meant) and `known_mounts` (what is mounted, in which
state, and how it is unmounted). Below are `system` (what is mounted where, and which programs use
it), `sshfs` (the program) and `connector` (what sshfs runs in place of ssh).

Decisions:

Why does sshfs run our connector and not ssh? A mount then needs no login of its own: the connector
hands sshfs's socket to the link, which speaks SFTP on it and hands over a new one after each loss.
No TCP port is opened, so no other user can connect to the mount or take the link's place. On
Windows, where nothing can be handed over, it carries the bytes through the link's pipe: there is no
`sh` for a `ProxyCommand` of SSHFS-Win's ssh, and our server would show the container's files.

Why does nothing here look into a mount? Even `stat` may hang where the far side is gone. Mounts
are read from the kernel's table, paths are resolved one name at a time and stop in front of a
mount, and programs that use one are found by their links in `/proc`.

Why has a mount no pid file? A pid is never trusted: its sshfs is found by its arguments.
"""
