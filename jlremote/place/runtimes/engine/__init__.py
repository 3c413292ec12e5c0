"""The container engines docker, podman and nvidia-docker, with and without `sudo`.

`kinds` has the table of engines and their differences, `engine_errors` what keeps one from working,
`engine_gpus` how each gives GPUs to a container, and which it has given. Only an `Engine` begins an
argv, by a call: `engine("start", name)`, so a prefix like `sudo -A -k` cannot be forgotten.
"""
