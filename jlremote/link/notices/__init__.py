"""Desktop notices of the link: jobs, long cells, dead kernels, time limits.

Read `job_notices` (the jobs that are watched), then `cell_notices` (what a recorder knows of cells
and kernels). `jlremote.laptop.desktop` shows them.

The link tells, as it runs where the person is; what came without a connection is told afterwards.
It asks by a short script every few seconds: one that waits would hold one of sshd's ten sessions.
Jupyter itself does not tell since when a kernel is busy, nor that it died.
"""
