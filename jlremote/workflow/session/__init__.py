"""One session: start it, open it, work in it, stop it.

Read `start` first, the story of `jlr start`; `prepare` begins it early. Then
`report` (how a session is described), `open`, `stop`, and the others, one command each.

Decisions:

**What does `jlr stop` end?** The kernels, Jupyter and the local port; with `--container` also the
container; with `--remove` its files as well. Busy kernels end only with `--force`, also those that
another laptop uses: Jupyter is asked before each stop.

**Why does a restored session keep its port?** The page in the browser is bound to it. A new link
forwards each session to the port in its record, and the page needs no new login.

**Why is the browser given a file and not the URL?** All users of a machine can read the arguments
of all processes, and the URL has the token (`browser`).
"""
