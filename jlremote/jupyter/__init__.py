"""Jupyter servers: launch them, find them, ask them.

Read `endpoint` first (a server, the place where it runs, and their names in a browser), then
`scripts` (what runs on the host), `discovery` (what those scripts print) and `survey` (both in one
round trip). `launch` with `launch_lock` and `configuration` start a server, and with it the
`recorder`, whose program is in `recording`; `presence` lists the sessions of a host, `activity`
what works in a container; `runtime_files` keeps secrets out of a saved image; `in_server` runs in
the server's process. `locate` proves the far end of a forward; `api` and `kernel_socket` use a
server through it.

Decisions:

**Why does Jupyter make the token?** Then no argument, environment variable or file of jlr holds it.
It is made in Jupyter's configuration file: a token that Jupyter generates is written to its log,
one that it is configured with is not. jlr reads it from Jupyter's runtime file (0600) and keeps it
in the link's memory.

**How is Jupyter of any age launched the same way?** JupyterLab 2 to 4 and Notebook 6 and 7 name
their options differently, and asking for the version would cost a start of Python. But each reads
the configuration file of its own name, so jlr writes two (`configuration`).

**Why a `base_url` for each session, that cannot be guessed?** Browsers share cookies between the
ports of 127.0.0.1, and keep them to a path. Most open a session under a name of its own
(`endpoint.hostname`), which the configuration allows; Safari resolves none.

**Why a unix socket on a host without containers?** Any user of the host can take a port of the
loopback once its server has ended, and be sent a cookie. No other user enters the session's folder.
Whether the SSH server connects to a socket shows only once it listens; if not, Jupyter is launched
again, on a port.

**Why is Jupyter not started with the shell's `&`?** POSIX makes such a process ignore SIGINT for
good, and then Ctrl-C works in none of JupyterLab's terminals.

**Why is a pid never trusted?** It may belong to another process by now. A server is identified by
its pid, the start time of its process and the socket that the process holds.

**Why no published port?** Existing containers have none, every user of the host can connect to it,
and after a restart another program may have it.

**When do bytes go by a container's own address?** Where each proof finds it alone on a bridge of
its own (`place/runtimes/docker/networks`): any other container there can answer ARP for that
address, and would read what is sent. A session's new container gets a network of its own.

**How is any other container reached?** By a relay through the engine's `exec`. It needs Python,
which is there wherever Jupyter is, and one of sshd's ten sessions for each forward: the ninth is
refused with the advice what to close. It names the container by its id, so it never enters another
one of that name.

**Where does TLS end, with a server that a person has given a certificate?** In a relay, which is
where the certificate's file is: a browser would warn, since no certificate has the name of a
forward, and the forward could neither judge names nor repeat what was lost.

**How is a further port known to be the session's?** By its place alone: the same container with the
same start, and in it the kernel's table of listeners. On a network that only the container has,
every listener is the container's. On the host's, a process of the container must hold the socket;
without a container, the user must have made it. Others can take such a port at any moment. So on
the host's loopback the proof comes after each connection and before its first byte; behind a relay
it holds for two seconds. Where nothing listens yet the state is `closed`, and the next request
looks again.
"""
