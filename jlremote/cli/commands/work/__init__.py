"""`Work there`: `shell`, `jobs` (run, attach), `forward`, `mount`, `kernels`; `code`, `ssh`."""
