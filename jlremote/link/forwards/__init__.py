"""The forwards of a link: each proves its far end before it sends a byte.

Read `session_forward` (one forward), then `link_forwards` (all of a link, and the engine's events
of changed containers).

A far end is proved on every new connection, for each connection to a port that others of the host
can take (`ssh/forward/connection_router.py`), when it refuses, when a command asks for it, and when
the engine reports a change of its container: a container's address goes to the next one that
starts, which an older proof would send a token to. Open connections are cut when the far end has
moved or gone, for it would never close them itself.
"""
