"""Jupyter servers: launch them, find them, ask them.

Read `server` first, then `scripts` (what runs on the host), `discovery` (what those scripts print)
and `survey` (both in one round trip). `launch` with `launch_lock` and `configuration` start a
server, and with it the `recorder`, whose program is in `recording`; `presence` lists the sessions
of a host, `activity` what works in a container; `runtime_files` keeps secrets out of a saved image;
`in_server` runs in the server's process; `api` and `kernel` use a server through its forward, whose
far ends are in `ports`.

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
(`jupyter/ports/origins`), which the configuration allows; Safari resolves none.

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
"""
