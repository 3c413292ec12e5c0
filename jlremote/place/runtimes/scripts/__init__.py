"""Scripts that run inside a container.

Read `waiting` first: the main process is a shell (under `--init`) that launches JupyterLab, then
waits, so that stopping Jupyter does not stop the container. The image's entrypoint runs with that
as its command; one that ends the container at once is left out, one that changes the user is
followed. Then `shell_scripts`, `packages` and `variables` (of `--env`, HOME and PATH). Packages go
to the image's own if pip may write there, else to a virtual environment in the container's `/tmp`;
not to `pip install --user`, as the home may be the person's own and serve many images.
"""
