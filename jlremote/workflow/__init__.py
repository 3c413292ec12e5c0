"""The story of each command in domain words, without printing or asking.

Read `session/start.py` first, and then the rooms in the order of their imports, bottom to top:
`host` (links, engines, requests, rollback), `forward` (local ports), `selection` (a typed name
becomes a session or job), `images`, `mounts`, `container` (reuse, create, launch Jupyter), `jobs`,
`show` (list, status), `session`, `output` (what cells printed), `editors` (ssh clients), `copies`
(`jlr cp`), `kernels` (for a local Jupyter) and `doctor`.

Why do the rooms of forwards and mounts not lie below `host`? A new link brings back what the last
one held, so `host` would need them, and they need its links. The command line hands that step over
in the `Context` (`session/restore.py`), and imports run one way.
"""
