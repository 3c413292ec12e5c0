"""Schedulers of clusters, as text for `sh` and as readers of its output; no effects.

Read `scheduler` first (what is asked of one, and its answers), then `slurm`, which asks it;
`slurm_lists` reads its lists (by columns, as `--json` changes from release to release; without its
heading an answer counts as none), and says why a job waits and how it ended, `launchers` makes
ranks and arrays of jobs, and `last_states` has the ends that a job cannot write down. Slurm's
manual forbids loops: the files that jobs write are waited for, and Slurm is asked seldom. The jobs
themselves, with their folders on the host, are in `jobs`.
"""
