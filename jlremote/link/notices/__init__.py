"""Desktop notices of the link: jobs, long cells, dead kernels, time limits.

Read `job_notices` (the jobs that are watched), then `cell_notices` (what a recorder knows of cells
and kernels). `jlremote.laptop.desktop` shows them.

Decisions:

Why does the link tell, and not the host? It runs on the machine where the person is, and for as
long as it has something to tell. What came while there was no connection is told afterwards.

How often is the host asked? Every few seconds, by a short script: a script that waits there would
hold one of sshd's ten sessions. A cluster's scheduler is asked less often. The recorder's files are
followed in a session that is spare, and given up when it is needed.

Why not ask Jupyter about its kernels? It says that one is busy, and not since when, and a kernel
that died looks like one that was restarted.
"""
