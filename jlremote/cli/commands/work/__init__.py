"""The heading `Work there`: shell, run, runs, attach, forward, mount and unmount."""
