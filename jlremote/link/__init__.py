"""The link: one background process for each host, which owns the SSH connection to it.

`client/` runs in the command's process, `wire/` in both, the rest in the link's own. Read
`wire/protocol` (the messages), `client/call` and `client/dial` (a command finds the link or starts
it), then `service/` (the link answers), `connection/` (it keeps the connection alive), `forwards/`,
`mount_streams` and `ssh_server/` (what it holds over that), `notices/` (what it tells the person).
`unix_listener` has the sockets at which sshfs and ssh find the link.

Decisions:

Why a process for each host, and not a forked `ssh -fNL` for each session? Passwords and second
factors are asked for once. `MaxStartups`, fail2ban and sshd's penalties see one connection. Ten
sessions share one reconnect logic, the second command needs no handshake, and the listener can
outlive the connection.

How is a link found? By a lock that it holds for as long as it lives, never by a pid: a pid may
belong to another process by now. A server on the host is identified in the same spirit, by its pid,
the start time of that process and the socket that it holds.
"""
