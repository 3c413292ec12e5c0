"""A host: its link, its engine, and how a command cleans up there after a failure.

Read `requests` and `context` first (what a command is given), then `links` (how a host, or several
at once, are reached), `engines` (which container engine) and `rollback`. `halted` refuses a
container that does not run, and says that GPUs are lost; `attached_process` joins a process with
the user's terminal.

Decisions:

**Which engine?** The one that was named (`--runtime`, a setting); else the one in the session's
record, also while its daemon is down; else docker, and where docker does not work the first that
works of podman, `sudo docker` and `sudo podman` (`engines`). Docker is tried in the survey itself,
so only a host without docker costs a second round trip.

- A `docker` that is podman (podman-docker) does not count: podman is used under its own name,
  because it does some things differently.
- `sudo` is tried only for members of `sudo`, `wheel` or `admin`: on other hosts each attempt would
  be reported to the administrator. An engine whose `sudo` wants a password comes last, and commands
  that only look never ask for that password.
- Where none works, a login shell of the host is asked, once (`link/wire`): what it finds serves all
  later scripts. Without its answer it cannot be told whether there is an engine.
"""
