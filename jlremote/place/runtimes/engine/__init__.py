"""The container engines docker, podman and nvidia-docker, with and without `sudo`.

`kinds` has the table of engines and their differences, `engine_errors` what keeps one from working,
`engine_gpus` how each gives GPUs to a container, and which it has given.

Decisions:

**Why the engines' command lines, and not their APIs?** They work behind any socket, context or
sudo, and can be shown (`--verbose`, `--dry-run`) and pasted.

**Who may begin an engine's argv?** Only the `Engine` itself, by a call: `engine("start", name)`. So
a prefix like `sudo -A -k` cannot be forgotten; a test looks for other code that spells `docker`.

**What do engines do differently?** All take docker's command line. `kinds.KINDS` lists the
differences: how GPUs are requested, whether short names mean Docker Hub, and so on.

**Why does `nvidia-docker` only create containers?** Its second version is a script that joins the
words of other commands and splits them at spaces; the first takes an image after `--` for an
option's value. So it stands in front of docker, whose command does the rest
(`EngineKind.everyday`). Its sessions are reachable as long as docker is there.
"""
