"""Scripts that run inside a container.

Read `waiting` (its main process) first, then `shell_scripts`, `packages`, and `variables` (of
`--env`, HOME and PATH).

Decisions:

**Why is Jupyter not the container's main process?** Stopping Jupyter must not stop the container,
and containers that others created must work, too. A container of ours runs a shell (under `--init`)
that launches JupyterLab as its child, then waits; that saves an `exec`, a tenth of a second. A file
beside the server's makes later starts of the container only wait.

**Which of an image's entrypoint and command run?** The entrypoint runs with our command, as in
`docker run IMAGE COMMAND`: NGC's sets up CUDA's compatibility libraries and variables, others a
user. A Jupyter that is launched later, by `exec`, takes the exported variables from the waiting
process in `/proc` (`waiting`), the only one that has them. The image's command never runs, even if
it is Jupyter: ours has the session's `base_url`, and stopping it does not stop the container. Some
entrypoints ignore their arguments:

- One that ends the container at once is left out: the container is created again without it, with a
  note. One that changes the user is followed: an `exec` of root goes on as the user of the waiting
  process, whose server it could not prove otherwise. Without `setpriv` in the image, which that
  takes, such an entrypoint is left out, too.
- A Jupyter server that it runs is reused. Beside any other program Jupyter is launched after 20 s.

Images without an entrypoint pay nothing for this, the others an `exec` and their entrypoint's time.

**Where do the packages of `--install` go?** To the image's own packages, if pip is there, the
folder is writable and no distribution manages it (PEP 668). Else to a virtual environment in the
container's `/tmp` that sees the image's packages, and that launches put first (`packages`). Not to
`pip install --user`: the home folder may be the person's own, on the host, and serve many images.
The label `org.jlremote.packages` lists what was requested; later launches check it by name, and
install what is gone. In an image of the container, `jlr image save` links them, and those of the
session's home, below `/opt/jlr`, where its variables let all users find them.
"""
