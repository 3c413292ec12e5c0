"""The far ends of forwards: a session's Jupyter server, or a further port beside it.

Read `endpoint` (a far end, and the warning before it ends), `locate` (what listens on a port, the
proof that it is still the session's, and the way to it), `origins` (their names in a browser on
this machine).

Decisions:

Why no published port? It has to be chosen when the container is created, so existing containers
could not be used; every user of the host can connect to it; and after a restart another program may
have it.

When do bytes go by a container's own address? Where each proof finds it alone on a bridge of its
own (`place/runtimes/docker/networks`): any other container there can answer ARP for that address,
with what docker gives to each, and would read what is sent. The default bridge counts as shared,
because each `docker run` puts a neighbour there. A session's new container gets a network of its
own.

How is any other container reached? By a relay through the engine's `exec`, also where the address
is in a network that the host is not in, as of rootless podman. The relay needs Python, which is
there wherever Jupyter is, and one of sshd's ten sessions for each forward: the ninth is refused
with the advice what to close. It names the container by its id, so it never enters another one of
that name.

Where does TLS end, with a server that a person has given a certificate? In a relay, which is where
the certificate's file is. With TLS from end to end a browser would warn, since no certificate has
the name of a forward, and the forward could neither judge names nor repeat what was lost. Which
file it is only Jupyter knows, whose configuration is a program that may make a new one when it is
run again: so each that its command line, configuration and folders name may prove it.

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
