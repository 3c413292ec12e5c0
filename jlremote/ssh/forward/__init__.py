"""The forward of a local port: from an accepted connection to its far end. SFTP goes the same way.

Read `forwarder` (the listener), `connection_router` with `browser_requests` (a far end for each
connection, its proof before the first byte, or the wait for one), `socket_bridge` (the bytes). A
container's own loopback is reached through `container_relay`, and by `remote/relay`, which runs in
the container. `place_streams` joins local sockets with any address of
a place, and listens there. `sftp_streams` serves mounts, and refuses links that lead out of one.
The decisions about far ends are in `jlremote/jupyter/locate`.

Why does the listener outlive the connection? A page that is open waits and goes on, and no other
program takes the port meanwhile. The page's own requests wait as long as it does: JupyterLab shows
a dialog for each that fails. Where many wait, those fail that it repeats without a word.

Why is the first request of each connection read? A browser hands a name's cookies to all its ports,
and believes a page of elsewhere that its name leads here. So a request under another name than the
forward's own ends here. What is no HTTP is passed on: no browser speaks it.

What is sent twice, if the connection was lost before the answer? A GET, and a page's PUT, which
HTTP calls idempotent: a file that was saved is saved again as it was. Not so a part of a large
file, which Jupyter appends to the parts before, nor any other request.
"""
