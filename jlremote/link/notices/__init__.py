"""What the link tells the person on the desktop: jobs that have begun or ended, time limits.

Read `shown` (a notice), `job_notices` (the jobs that are watched).

Decisions:

Why does the link tell, and not the host? It runs on the machine where the person is, and for as
long as it has something to tell. What came while there was no connection is told afterwards.

How often is the host asked? Every few seconds, by a short script: a script that waits there would
hold one of sshd's ten sessions. A cluster's scheduler is asked less often.
"""
