"""Container images and registries: the commands about them, their scripts, output and errors.

Read `image_names`, `image_commands` (the engine's command lines for images, and what they print)
and `image_errors`, then the commands: `pull` (and push) with `transfers`, `login` with
`registry_keys`, `build` with `build_context` (what of a folder is sent), `save` (also `jlr image
list`), and `removal`. `image_files` is for Apptainer, whose images are files.

Decisions:

How does a registry's key get to a host? On stdin, for one command: into a `config.json` in a new
folder that is deleted afterwards. It is in no argument, variable or file that lasts. `docker login`
itself would hand the key to any credential helper that it finds on the host.

Why does a pull or build go on when the connection breaks? The engine would end it with its client,
so its output is read to the end on the host. A pull is joined again, because docker lets two
commands share one transfer.
"""
