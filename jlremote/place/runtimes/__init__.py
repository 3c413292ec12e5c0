"""Runtimes: a host's container engines, and the host itself, as places for Jupyter servers.

Read `runtime` first: a `Runtime` returns text for `sh` and has no effects. `engine_containers`,
those of `processes` (`--runtime none`, Apptainer) are the kinds, `on_node` takes one of the last
two to a cluster's node, `table` has them by name. Other rooms ask for a property or method, not for
a name. A `place` is one of them with the name of what runs there. `container_options` are those
that a container gets, has or cannot have. Below: `engine` (the engines and their errors), `docker`
(their command lines), `scripts` (run in containers). The engines' command lines, not their APIs,
work behind any socket, context or sudo.
"""
