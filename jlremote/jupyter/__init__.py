"""Jupyter servers: launch them, find them, ask them.

Read `endpoint` first (a server, the place where it runs, and their names in a browser), then
`scripts` (what runs on the host), `discovery` (what those scripts print) and `survey` (both in one
round trip). `launch` with `configuration` starts a server, and with it the
`recorder`; `presence` lists the sessions of a host, `activity` what works in a container;
`in_server` runs in the server's process.
`locate` proves the far end of a forward; `api` uses a server through it.

Jupyter makes the token, so no argument, variable or file of jlr holds it. A pid is never trusted: a
server is its pid, its process's start time and the socket that the process holds. Browsers share
cookies between ports, so each session has a name and an unguessable `base_url` of its own.
"""
