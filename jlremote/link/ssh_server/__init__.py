"""The link's own SSH server: ssh clients and editors of this laptop reach a session by it.

`ssh cont1.jlr` runs `jlr proxy cont1.jlr`, which asks the link to serve SSH on the command's
socket; nothing listens on a port. What a client asks for becomes a channel of the link's own.

Read `ssh_clients` (all clients of a link, and their event loop), `client_connection` (the login of
one, and sockets in the session, both ways, with the client's agent) and `command_channel` (a shell,
command or subsystem). asyncssh, which costs 0.2 s and 20 MB, is imported with the first client.

A client must reach the link's socket (0700) and log in with the key of `editors/editor_keys`; the
user's name means nothing. Its connection lasts until it leaves or `jlr stop` ends the session; when
the link's connection breaks, the commands on it end with status 255.
"""
