"""`Work there`: `shell`, `jobs` (run), `forward`, `mount`, `kernels`, `copy`, `code`, `ssh`."""
