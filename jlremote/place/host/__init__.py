"""The remote host as jlr sees it: a shell that runs scripts.

Read `contract` first: a host runs steps, each ends as a `Completed`, and answers are split into
records. `framing` turns steps into one script for `sh -s`: on stdin it is byte-exact under every
login shell, and a random marker keeps apart what startup files print. `shell_text` has the pieces
of scripts, `addresses` the ends of forwards and the kernel's sockets, `installation` the commands
that install a program. `process_mark` finds a process in a container, which outlives the engine's
client that began it; `sudo` hands over a password. `job` is what runs by itself; `kept_jobs` keeps
one in a folder of the host, also one that waits for GPUs.
"""
