"""The link: one background process for each host, which owns the SSH connection to it.

`client/` runs in the command's process, `wire/` in both, the rest in the link's own. Read
`wire/protocol` (the messages), `client/call` (a command finds the link or starts it), then
`service/` (the link answers), `connection/` (it keeps the connection alive), `forwards/`,
`mount_streams` and `ssh_server/` (what it holds over that), `notices` (what it tells the person).

One process asks for a password once, and has one reconnect logic for all sessions; its listeners
outlive the connection. A link is found by a lock that it holds for as long as it lives, never by a
pid, which may belong to another process by now.
"""
