"""Schedulers of clusters, as text for `sh` and as readers of its output; no effects.

Read `scheduler` first (what is asked of one, and its answers), then `slurm`, which asks it;
`slurm_lists` reads its lists, `slurm_reasons` says why a job waits and how it ended, `launchers`
makes ranks and arrays of jobs, and `last_states` has the ends that a job cannot write down. The
jobs themselves, with their folders on the host, are in `jobs`.

Decisions:

Why no JSON of Slurm's? `squeue --json` changes from release to release, and old sites lack it. The
columns are asked for one by one, with a separator of our own and times in seconds since the epoch.

When is an answer believed? A list is, if it begins with its headings: Slurm's commands can fail
with status 0. Without an answer nothing is known, and no job counts as ended.

How often is Slurm asked? Its manual forbids loops. A job writes down its own beginning and end, and
those files are what is waited for. Slurm is asked for the reason of a wait after 2 s, 4 s, 8 s, up
to once a minute; and whether a session's job is over when something of it is proved or does not
answer, at most every ten seconds.
"""
