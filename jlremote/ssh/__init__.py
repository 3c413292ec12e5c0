"""SSH: the only room that imports paramiko and sshtunnel.

Read `connect`, the story of one connection, and `connection`, what the link has of it then:

- `config`: the settings of a destination, from `ssh -G`;
- `transport`: a socket to the server, packets and keys, and the way of a byte from the browser to
  Jupyter and back;
- `trust`: the verification of the host's key;
- `login`: keys, agents, passwords and second factors;
- `channels`: scripts and terminals on the host, and what else goes over the connection;
- `forward`: a local port's data, and mounts.

`failures` translates exceptions into our errors; `wire_format` has strings and key blobs.

Why paramiko for the connection, and not asyncssh or the `ssh` program? The forwarder that was asked
for, sshtunnel, needs paramiko. `ssh` is not on every laptop, and a subprocess does not tell whether
its connection is alive.
"""

import sys

# paramiko imports `invoke`, with asyncio, unittest and a YAML parser, for one keyword of its own
# configuration parser (`Match exec`), and does without where it is missing. It takes two thirds of
# paramiko's import time, which every first `jlr start` would wait for, and 8 MB.
sys.modules.setdefault("invoke", None)  # type: ignore[arg-type]  # import reads it as "missing"
