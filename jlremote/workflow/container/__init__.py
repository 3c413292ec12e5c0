"""The container of a session or job, and the Jupyter server in it."""
