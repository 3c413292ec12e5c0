"""Jobs: commands that run on a host by themselves, without a link.

Read `stories` (the commands), then `place/host/job` (a job, and what keeps one) and its three
kinds: `containers` (a container of its own, kept by the engine), `place/host/kept_jobs` (a process
of the host, kept in a folder by `remote/job_keeper`) and `scheduled` (a batch job, kept in a folder
of the cluster's shared home; `scheduled_script` is what its node runs, `scheduled_facts` reads the
folder). `notebook` is the command of a job that runs a notebook.

Decisions:

What is a job? Something on the host that needs no link. In a container of its own it is that
container's main process, and the engine keeps its output and exit code. On a cluster the scheduler
runs it. Else it is a process of the host with a folder for its output. In a session's container
that process is the engine's client, so the output outlasts the container.

Why docker's `local` log? It keeps every byte as it was; `json-file` keeps only what is UTF-8.

How does `jlr stop` find all of a job's processes? By its group, by the mark in their environment
and by their parents (`place/host/process_mark`): also those that ignore SIGTERM, called `setsid`,
or cleared their environment. The program that waits for the command, on the host or in the
container, is a subreaper (`remote/orphans`), so it is the parent of the orphans among them, and
outlives those at a stop; in a container without a Python they are not found. A control group would
find them, but none is the job's own. That of a login belongs to root, so the user can neither make
one below it nor move a process from it into one of the user's; one of `systemd-run --user` ends
with the last login unless the host lingers, and a job is to outlast that; an engine's `exec` shares
its container's. Jobs of a container of their own, and a scheduler's, are ended by those, which have
such groups.

How is output followed across a lost connection? The client counts the bytes of both streams that it
has shown, and asks for what lies behind them.
"""
