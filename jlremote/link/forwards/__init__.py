"""The forwards of a link: each proves its far end before it sends a byte.

Read `session_forward` (one forward), then `link_forwards` (all of a link, and the engine's events
of changed containers).

Decisions:

When is a far end proved again? On every new connection, for each connection to a port that others
of the host can take (`ssh/forward/connection_router.py`), when it refuses (so a dead Jupyter is
reported at once), when a command asks for it, and when the engine reports a change of its
container. Many refusals in a row cause one proof. A server that has ended may be started again by
hand: in its container another server with a token is followed, like one that `jlr start` would
reuse.

Why does the link read the engine's events? The address of a container that ended, or was
disconnected from its network, goes to the next one that starts, and a forward that relies on an
older proof would send a token there; and a container that joins the network of another can take
its address. To ask before each connection would take a tenth of a second
and a dockerd that answers; an event comes within milliseconds and costs nothing until then. It
takes one of sshd's ten sessions, but only a spare one, which is given up when it is needed.

What happens to open connections? They are cut when the far end has moved or gone, for it would
never close them itself.
"""
