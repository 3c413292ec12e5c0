"""Places where programs run: a host, its containers, a cluster's node. All is text for `sh`.

Read `host` (scripts, and what answers are made of), `runtimes` (docker, podman, Apptainer, the host
itself) and `clusters` (Slurm).
"""
