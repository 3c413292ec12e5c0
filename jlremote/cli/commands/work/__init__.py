"""`Work there`: `shell`, `jobs` (run, runs, attach), `forward`, `mount`, `kernels`; also `ssh`."""
