"""The engines' command lines, and the errors of containers that cannot be created.

Read `docker_commands` first, then `networks` (of a session's container) and `docker_errors`, also
for docker before 20.10.

Decisions:

**Why has a session's container a network of its own?** No neighbour can take its address there, so
the forward's bytes go by it (`ports`). Docker's address pools have room for thirty networks; where
there is none, the default one is used, and `exec` leads in. A job's container gets none: nothing
connects to it. A network goes with its container; one that was left over is told by `jlr doctor`
and removed by `jlr image prune`. `docker network prune` takes those of containers that have
stopped, so a start makes them again.

**What if docker is older than `--gpus`?** Nothing asks beforehand: docker is told to create, and
refuses. Only then is the same container created by `nvidia-docker`, which old hosts have; a docker
that refuses `--pull=never` (before 20.10) is driven without it. So other hosts pay nothing, and
docker's own word decides, also for a daemon older than its client or without NVIDIA's toolkit.
`--dry-run` and `jlr doctor` create nothing and go by `docker create --help`. Without `--gpus`
docker itself is used: under NVIDIA's runtime its images would get every GPU.
"""
