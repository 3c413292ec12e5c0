"""The forwards of sessions: held on a local port, checked, and restored with a new link.

Read `local_ports` (choose a local port, hold a forward on it, put it back, restore it after a link
has ended), `jupyter_check` (does Jupyter answer, and how does it authenticate), `address` (the URLs
of a forward, and what `jlr forward` shows) with `browser` and `loopback_page` (how a browser gets
them), and `listening` (the ports on which programs of a session listen).

Decisions:

Why is the browser given a file and not the URL? All users of a machine can read the arguments of
all processes, and the URL has the token (`browser`). A browser that cannot read the file asks a
page for it, which tells this user by the socket's owner (`loopback_page`).

Which local port does a session get? The one that it had, else the first from 8888 on that never
belonged to another session; a further port gets its own number, else the next one. A port stays its
session's while the link is down and after the session's end: a page may leave a service worker in
the browser, which answers every later page of that origin. Only `--port`, or a range that is used
up, gives it to another, with a note.
"""
