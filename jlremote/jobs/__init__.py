"""Jobs: commands that run on a host by themselves, without a link.

Read `begin` (the story of `jlr run`) with `begin_container`, `begin_process` and `begin_scheduled`
(its three kinds), `command_file` (the script or notebook that runs), `follow` (a job to its end),
`streams` (stdin, or the terminal of a job with one) and `known_jobs` (find, list, stop and delete).
`session_job` is a session as a job of a cluster.

What a job is, and what keeps one, is in `place/host/job`. `engine_jobs` has the scripts of jobs in
containers of their own, `place/host/kept_jobs` those of processes of the host, kept in a folder by
`remote/job_keeper`, and `scheduled_jobs` those of batch jobs, kept in a folder of the cluster's
shared home: `scheduled_script` runs on the node, and `scheduled_facts` reads the folder.

Decisions:

What is a job? Something on the host that needs no link. In a container of its own it is that
container's main process, and the engine keeps its output and exit code. On a cluster the scheduler
runs it. Else it is a process of the host with a folder for its output. In a session's container
that process is the engine's client, so the output outlasts the container.

Why docker's `local` log? It keeps every byte as it was; `json-file` keeps only what is UTF-8.

What runs before a job's command? As a rule nothing, as with `docker run`. A job with a user (by
default one's own, where it sees folders of the host) may lack a writable HOME, and with `--install`
it waits for its packages. Then a shell starts in the place of the image's entrypoint, does that,
and becomes the entrypoint with the command.

How are packages installed for a job? By an `exec` beside the waiting shell, so that pip's output is
not the job's. The shell ends by itself if the `exec` is killed, and begins the job if only the
laptop is gone.

What if the image has no shell? A copy of `/bin/sh` out of the container shows it before the start:
under `--init` a missing shell would show only in the job's output. Then the program runs by itself.

Where does a job wait for GPUs? On the host (see `gpus`), a detached one as its own process job.
If it is to have a container of its own, that process creates it and deletes its own folder, so from
then on the engine has the job, as any other.

What does Ctrl-C do to a job? Commands that only show it (`attach`, `logs`, `wait`) leave it alone.
`jlr run` on a terminal first asks whether to interrupt it or to leave it; Ctrl-C again, and the
first one in a script, sends SIGINT to all that the job began, as a terminal would; `docker run`
signals only the first process, and a shell there would wait for the rest. The next one kills the
job, and one more leaves it alone. A hang-up or a lost connection never ends a job. No keys leave a
job without a terminal: to read them would take what is typed ahead for the shell.

How does `jlr stop` find all of a job's processes? By its group, by the mark in their environment
and by their parents (`place/host/process_mark`): also those that ignore SIGTERM, called `setsid`,
or cleared their environment. The program that waits for the command is a subreaper
(`remote/orphans`): it becomes the parent of orphans; in a container without a Python they are not
found. No control group is the job's own: a login's belongs to root, one of `systemd-run --user`
ends with the last login, and an engine's `exec` shares its container's.

What keeps a job's terminal? That of a container of its own the engine. It is created first and
started by a client in the user's terminal: a client that attaches to a running container misses
what it has printed. Any other a program on the host, in Python (`remote/job_terminal`): tmux is
often missing, would draw the output anew, and keeps no exit code. In a session's container the
engine's client runs in that terminal.

How is output followed across a lost connection? The client counts the bytes of both streams that it
has shown, and asks for what lies behind them; so it does at the end, as docker leaves out a last
line without a newline.
"""
