"""Where a Jupyter server can run on the host: one module each, and one table of them."""
