"""Slurm.

`commands` asks it; `queue` and `nodes` read its lists, `reasons` says why a job waits and how it
ended, and `launchers` makes ranks and arrays of jobs.
"""
