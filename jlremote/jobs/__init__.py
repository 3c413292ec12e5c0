"""Jobs: commands that run on a host by themselves, without a link.

Read `begin` (the story of `jlr run`) and its three kinds. Two are in `begin_on_host`: the main
process of a container of its own, kept by the engine (`engine_jobs`), and a process of the host, or
the engine's client in a session's container, kept in a folder (`place/host/kept_jobs`) by
`remote/job_keeper`. `begin_scheduled`: a batch job with a folder in the cluster's shared home
(`scheduled_jobs`, and `scheduled_script` on the node). Then `command_file` (the script or notebook
that runs), `follow` (a job to its end, with stdin or a terminal), `known_jobs` (find, list, stop,
delete); `session_job` is a session as a batch job.

A hang-up or a lost connection never ends a job. `jlr stop` finds its processes by group, by a mark
in their environment and by their parents (`place/host/process_mark`, `remote/orphans`).
"""
