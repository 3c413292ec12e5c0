"""The heading `Work there`: `shell`, `jobs` (run, runs, attach), `forward`, `mount`; also `ssh`."""
