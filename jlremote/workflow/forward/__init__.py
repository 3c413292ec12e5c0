"""The forwards of sessions: held on a local port, checked, and restored with a new link.

Read `forwards` (hold a forward, put it back, restore it after a link has ended), `local_ports`
(which local port), `jupyter_check` (does Jupyter answer, and how does it authenticate),
`port_report` (what `jlr forward` shows).

Decision:

Which local port does a session get? The one that it had, else the first free one from 8888 on; a
further port gets its own number, else the next free one. A port stays its session's even while the
link is down, so that an open page of the browser works again later.
"""
