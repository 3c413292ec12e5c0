"""Slurm: `commands` is the scheduler, `queue` reads its lists, `reasons` and `endings` explain."""
