"""The container of a session or job, and the Jupyter server in it.

Read `provision` (reuse, start or create a container) with `new_container` and `host_folders`, or
`image_definition` where no engine runs; then `jupyter_launch`, and
`recording` of what cells print. All are given a `StartContext` (`hosts/requests`), and GPUs by
`gpus/allocation`.

Decisions:

**Why does a container with folders of the host run as the login user?** Its files there would be
root's otherwise. This takes one more question to the host (`host_folders`): who the user is,
whether the folders exist (the engine would create empty ones, owned by root), and whether the
engine itself maps users. Without such folders the image's own user stays, as many images expect it.

**Why does creation not check anything beforehand?** Each check is a round trip, and the engine's
own refusal decides anyway. So `new_container` tries, reads the refusal, and tries again without
`--init`, the entrypoint or `--gpus` where that can help.
"""
