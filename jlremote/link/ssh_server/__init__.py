"""The link's own SSH server: ssh clients and editors of this laptop reach a session by it.

`ssh cont1.jlr` runs `jlr proxy cont1.jlr`, which resolves the name, connects the link and asks it
to serve SSH on the command's socket; nothing listens on a port. The client's bytes go over that
unix socket to the server here. Each thing that the client asks for becomes a channel of the link's
one connection to the host, so there is no second login, and nothing is installed on the host.

Read `ssh_clients` (all clients of a link, and their event loop), `client_connection` (the login of
one, and what it may ask for), `command_channel` (a shell, command or subsystem), `place_forwards`
(sockets in the session, both ways, and the client's agent) and `served_place` (how a command gets
where the session runs).

Decisions:

Why asyncssh? It is a server with all that OpenSSH's clients ask for, and has types. paramiko's
server side takes a thread for each channel and does no forwards. It is imported when the first
client comes: 0.2 s and 20 MB that other links do without.

Who may use it? A client must reach the link's socket, whose folder is 0700 and whose secret is
0600, and then log in with the key of `editors/editor_keys`; the client verifies the host key from
there. The user's name in the login means nothing: the session's own user is the only one.

Why does the link not serve as ssh's `ControlPath`? Commands would begin in half the time, and their
bytes be encrypted once on the laptop and not three times. But nothing in that protocol tells
`ssh -N` from a shell, so each `ssh` would have to be judged by its arguments before, and its
descriptors would be a further way for bytes.

Why are the requests of a client's own forwards (`ssh -L`) not judged, as those of `ssh/forward`?
They have no names of ours, and the client chooses the port; a proxy is reached by them, too.

What lasts how long? The connection between client and server lasts until the client ends it or
`jlr stop` ends the session. When the link's connection to the host breaks, the commands on it end
with status 255 and a line that says so; new ones wait for the reconnect. Each command takes one of
the link's lasting sessions (`ssh/channels/channel_registry`) and waits some seconds for one.
"""
