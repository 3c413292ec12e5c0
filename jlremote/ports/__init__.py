"""The far ends of forwards: a session's Jupyter server, or a further port beside it.

Read `endpoint` (a far end), `listeners` (what listens on a port), `locate` (the proof that it is
still the session's, and the way to it), `time_limit` (the warning before it ends), `origins` (their
names in a browser on this machine).

Decisions:

Why no published port? The host reaches a container's own address, so a container without `-p`
works, nothing opens on the host, and no other user can take the port first.

How is a rootless container reached? By a relay through the engine's `exec`, and not by a published
port. Its address is in a network that the host is not in. A published port has to be chosen when
the container is created, so existing containers could not be used; every user of the host can
connect to it; and after a restart another program may have it. The relay needs Python, which is
there wherever Jupyter is, and one of sshd's ten sessions for each forward: the ninth is refused
with the advice what to close. It names the container by its id, so it never enters another one of
that name.

How is a further port known to be the session's? It has no token and no runtime file, so it is found
by its place alone: the same container with the same start, and in it the kernel's table of
listeners. On a network that only the container has, every listener is the container's. On the
host's, a process of the container must hold the socket; without a container, the user must have
made it. Others can take such a port at any moment, also a server's once that has ended. So on the
host's loopback the proof comes after each connection and before its first byte; behind a relay it
holds for two seconds, and not until the next reconnect.

What if nothing listens there yet? That is a state (`closed`), because TensorBoard is often started
later. The next request looks again.
"""
