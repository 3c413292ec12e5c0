"""Jupyter servers: launch them, find them, ask them.

Read `endpoint` first (a server, the place where it runs, and their names in a browser), then
`scripts` (what runs on the host), `discovery` (what those scripts print) and `survey` (both in one
round trip). `launch` with `launch_lock` and `configuration` start a server, and with it the
`recorder`, whose program is in `recording`; `presence` lists the sessions of a host, `activity` what
works in a container; `runtime_files` keeps secrets out of a saved image; `in_server` runs in the
server's process. `locate` proves the far end of a forward; `api` and `kernel_socket` use a server
through it.

Decisions:

**Why does Jupyter make the token?** Then no argument, environment variable or file of jlr holds it.
It is made in Jupyter's configuration file (`secrets.token_hex`): a token that Jupyter generates is
written to its log, one that it is configured with is not. jlr reads it from Jupyter's runtime file
(0600) and keeps it in the link's memory.

**How is Jupyter of any age launched the same way?** JupyterLab 2 to 4 and Notebook 6 and 7 name
their options differently, and asking for the version would cost a start of Python at every launch.
But each reads the configuration file of its own name, so jlr writes two (`configuration`), and the
command line has only what all versions understand. Which page to open is told by the process's
program, also for a server that was started by hand.

**Why a `base_url` for each session, that cannot be guessed?** Browsers share cookies between the
ports of 127.0.0.1, and keep them to a path. Most open a session under a name of its own
(`endpoint`), which the configuration allows; Safari resolves none.

**Why a unix socket on a host without containers?** Any user of the host can take a port of the
loopback once its server has ended, and be sent a cookie. No other user enters the session's folder.
The configuration decides: only the server's own Python knows whether Jupyter and the file system
take a socket. Whether the SSH server connects to it shows only once it listens, since OpenSSH
refuses without a reason; if not, Jupyter is launched again, on a port.

**Why is Jupyter not started with the shell's `&`?** POSIX makes such a process ignore SIGINT for
good, and then Ctrl-C works in none of JupyterLab's terminals.

**What does a page miss of a silence of the network, or of resets?** Nothing: in `in_server` each
page has one queue for all of its connections, and tells with each how many messages it has. Jupyter
alone writes into the dead connection until its pings fail, and keeps nothing of that.

**Why does a page show no dialog when the network changes?** Its `fetch` asks again
(`in_server/pages`). Only the page can: Chromium ends requests that never left it.

**Why is a pid never trusted?** It may belong to another process by now. A server is identified by
its pid, the start time of its process and the socket that the process holds.

**Why no published port?** It has to be chosen when the container is created, so existing containers
could not be used; every user of the host can connect to it; and after a restart another program may
have it.

**When do bytes go by a container's own address?** Where each proof finds it alone on a bridge of its
own (`place/runtimes/docker/networks`): any other container there can answer ARP for that address,
with what docker gives to each, and would read what is sent. The default bridge counts as shared,
because each `docker run` puts a neighbour there. A session's new container gets a network of its
own.

**How is any other container reached?** By a relay through the engine's `exec`, also where the address
is in a network that the host is not in, as of rootless podman. The relay needs Python, which is
there wherever Jupyter is, and one of sshd's ten sessions for each forward: the ninth is refused
with the advice what to close. It names the container by its id, so it never enters another one of
that name.

**Where does TLS end, with a server that a person has given a certificate?** In a relay, which is where
the certificate's file is. With TLS from end to end a browser would warn, since no certificate has
the name of a forward, and the forward could neither judge names nor repeat what was lost. Which
file it is only Jupyter knows, whose configuration is a program that may make a new one when it is
run again: so each that its command line, configuration and folders name may prove it.

**How is a further port known to be the session's?** It has no token and no runtime file, so it is found
by its place alone: the same container with the same start, and in it the kernel's table of
listeners. On a network that only the container has, every listener is the container's. On the
host's, a process of the container must hold the socket; without a container, the user must have
made it. Others can take such a port at any moment, also a server's once that has ended. So on the
host's loopback the proof comes after each connection and before its first byte; behind a relay it
holds for two seconds, and not until the next reconnect.

**What if nothing listens there yet?** That is a state (`closed`), as TensorBoard is often started
later. The next request looks again.
"""
