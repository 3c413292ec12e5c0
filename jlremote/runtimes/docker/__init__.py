"""The engines' command lines, and the errors of containers that cannot be created.

Read `docker_commands` first, then `docker_errors`, and `old_docker` for docker before 20.10.

Decisions:

**What if docker is older than `--gpus`?** Nothing asks beforehand: docker is told to create, and
refuses. Only then is the same container created by `nvidia-docker`, which old hosts have; a docker
that refuses `--pull=never` (before 20.10) is driven without it. So other hosts pay nothing, and
docker's own word decides, also for a daemon older than its client or without NVIDIA's toolkit.
`--dry-run` and `jlr doctor` create nothing and go by `docker create --help`. Without `--gpus`
docker itself is used: under NVIDIA's runtime its images would get every GPU.
"""
