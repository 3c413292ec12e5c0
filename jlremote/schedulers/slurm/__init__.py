"""Slurm.

`commands` is the scheduler; `queue` and `nodes` read its lists, `reasons` and `endings` explain,
and `arrays` and `launchers` make several jobs and ranks.
"""
