"""Container images and registries: command lines, output and errors as plain functions.

Read `image_names`, `commands` (the engine's command lines for images, and what they print),
`transfers` (progress of a pull or push), `build_log`, `key_scripts` (a registry's key for one
command), `image_removal` and `image_errors`; `image_files` has all this for Apptainer, whose images
are files. `images/stories` runs them.

Decisions:

How does a registry's key get to a host? On stdin, for one command: into a `config.json` in a new
folder that is deleted afterwards. It is in no argument, variable or file that lasts. `docker login`
itself would hand the key to any credential helper that it finds on the host.

Why does a pull or build go on when the connection breaks? The engine would end it with its client,
so its output is read to the end on the host. A pull is joined again, because docker lets two
commands share one transfer.
"""
