"""Runtimes: a host's container engines, and the host itself, as places for Jupyter servers.

Read `runtime` first: a `Runtime` returns text for `sh` and has no effects. `engine_containers`,
`bare` (`--runtime none`) and `apptainer` are the three kinds, `on_node` takes one of the last two
to a cluster's node, `table` has them by name. `container_options` are those that a container gets
or has, `refused_options` those that it cannot have. `container_list` lists all containers of an
engine, and what only one of them has. Below: `engine` (the engines and their errors), `docker`
(their command lines), `scripts` (run in containers).

Decisions:

**How do other rooms tell runtimes apart?** By a property or method of the runtime, e.g.
`has_containers`, `place`, `servers_folder`. Only code that runs an engine's own command asks for
its `engine`. Another runtime is one more module and one more row of `table`.

**How is an existing container compared with the request?** By the engine's `inspect`, and only in
options that were requested. `inspect` does not have the words after `--`, so a label keeps them.

**Why Apptainer's `exec` and not `instance`?** A process that `apptainer exec` runs is a process of
the host: it has the host's network and process ids, and ends as any other. So all of a session is
read as that of `--runtime none`: from its folder and `/proc`, without entering the image. Instances
leave registrations behind in homes that machines share, and cannot be used below Slurm.

**What is a container of Apptainer's then?** Two files in its folder: `container.json` says what it
was defined with, and `enter` is a script that runs a command so. The server, `jlr shell` and `jlr
run --in` enter with the same image, options and `/tmp`. `jlr rm` deletes the folder.

**What of the host is seen in it?** Apptainer's defaults: the home folder and variables. Python's
packages in the home (`~/.local`) would hide the image's, so they are left out, and so are variables
that lead to others. `/tmp` is the session's own: the host's is shared with all users.
"""
