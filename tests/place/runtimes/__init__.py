"""Where a Jupyter server can run, on real parts."""
