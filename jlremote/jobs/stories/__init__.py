"""`jlr run` and what one does with jobs: list, follow, stop and delete them.

Read `run` (the story of a new job), then `container`, `process` and `scheduled` (its three kinds)
with `queue`, `follow` (to its end), `streams` (stdin, or the terminal of a job with one), and
`jobs` (find, list, stop and delete). `session_job` is a session as a job of a cluster. Their
scripts are in `jlremote/jobs`.

Decisions:

What runs before a job's command? As a rule nothing, as with `docker run`. A job with a user (by
default one's own, where it sees folders of the host) may lack a writable HOME, and with `--install`
it waits for its packages. Then a shell starts in the place of the image's entrypoint, does that,
and becomes the entrypoint with the command.

How are packages installed for a job? By an `exec` beside the waiting shell, so that pip's output is
not the job's. The shell ends by itself if the `exec` is killed, and begins the job if only the
laptop is gone.

What if the image has no shell? A copy of `/bin/sh` out of the container shows it, while the engine
starts it: under `--init` a missing shell would show only in the job's output. Then the program runs
by itself.

Where does a job wait for GPUs? A detached one on the host (see `gpus`), as a process job.
If it is to have a container of its own, that process creates it and deletes its own folder, so from
then on the engine has the job, as any other.

What does Ctrl-C do to a job? The first sends SIGINT to all that the job began, as a terminal would;
`docker run` signals only the first process, and a shell there would wait for the rest. The second
kills the job, and the third leaves it alone. A hang-up or a lost connection never ends a job.

What keeps a job's terminal? That of a container of its own the engine. It is created first and
started by a client in the user's terminal: a client that attaches to a running container misses
what it has printed. Any other a program on the host, in Python (`remote/job_terminal`): tmux is
often missing, would draw the output anew, and keeps no exit code. In a session's container the
engine's client runs in that terminal.
"""
