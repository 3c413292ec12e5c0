"""What the laptop keeps: paths, settings, records and secrets; and its notices.

Read `paths` first (which folders, and who may enter them), then `record_files` with `sessions` (and
ports and mounts) and `job_records`, then the folder `settings`, then `typed_place` (what a typed
word stands for). `secrets` is the keychain, `known_names` serves the completion of shells and of
ssh, `desktop` shows notices, `tar_archive` packs files, `windows` has what only Windows has.

Decisions:

**What does the laptop remember?** What no host can tell (the local port of a session, where a job
runs, what is mounted where), and of a container what makes it anew (image, GPUs) or proves it (its
id). Which containers, servers and tokens there are is asked for on the host.
"""
