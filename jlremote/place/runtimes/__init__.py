"""Runtimes: a host's container engines, and the host itself, as places for Jupyter servers.

Read `contract` first: a `Runtime` returns text for `sh` and has no effects. `containers`, `bare`
(`--runtime none`) and `apptainer` are the three kinds, `on_node` takes one of the last two to a
cluster's node, `table` has them by name. Below: `engine` (the engines and their errors), `docker`
(their command lines), `options` (of containers), `scripts` (run in containers). `container_list`
lists all containers of an engine, `container_changes` what only one of them has; `gpu_faults` finds
one that lost its GPUs.

Decisions:

**How do other rooms tell runtimes apart?** By a property or method of the runtime, e.g.
`has_containers`, `place`, `servers_folder`. Only code that runs an engine's own command asks for
its `engine`. Another runtime is one more module and one more row of `table`.
"""
