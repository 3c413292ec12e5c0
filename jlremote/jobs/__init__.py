"""Jobs: commands that run on a host by themselves, without a link.

Read `job` (a job, and what keeps one), then `containers` (a container of its own, kept by the
engine), `processes` (a process of the host, kept in a folder) and `scheduled` (a batch job, kept in
a folder of the cluster's shared home; `scheduled_script` is what its node runs, `scheduled_facts`
reads the folder). `terminal` is that of a job on the host, which `terminal_program` keeps there.
`notebook` is the command of a job that runs a notebook, by `notebook_program` on the host.
`workflow/jobs` runs them.

Decisions:

What is a job? Something on the host that needs no link. In a container of its own it is that
container's main process, and the engine keeps its output and exit code. On a cluster the scheduler
runs it. Else it is a process of the host with a folder for its output. In a session's container
that process is the engine's client, so the output outlasts the container.

Why docker's `local` log? It keeps every byte as it was; `json-file` keeps only what is UTF-8.

How does `jlr stop` find all of a job's processes? By its group, by the mark in their environment
and by their parents (`host/process_mark`): also those that ignore SIGTERM, called `setsid`, or
cleared their environment while their parent lives. A control group would find one kind more:
orphans that did all of that. But none is the job's own. One of `systemd-run --user` ends with the
user's last login unless the host lingers, and a job is to outlast that; the one of the login has
the link's programs and other jobs, too; an engine's `exec` shares its container's. Jobs of a
container of their own, and a scheduler's, are ended by those, which have such groups.

How is output followed across a lost connection? The client counts the bytes of both streams that it
has shown, and asks for what lies behind them.
"""
