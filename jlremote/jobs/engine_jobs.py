"""Jobs in containers of their own: the engine keeps their output and exit codes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jlremote.place.host.contract import MINE, understood
from jlremote.place.host.job import Job
from jlremote.place.host.shell_text import command_line, until_hang_up
from jlremote.place.host.sudo import endable
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import JOB_LABEL, START_LABEL, TYPED_LABEL
from jlremote.text import is_name
from jlremote.untrusted import document, moment

COMMAND_LABEL = "org.jlremote.job-command"
GPUS_LABEL = "org.jlremote.job-gpus"
REMOVE_LABEL = "org.jlremote.job-rm"
# The process name of podman's `--init`, which signals only the first process of a job.
_PODMANS_INIT = "podman-init"
_TELL_ALL = f"""\
kill -s "$1" -- -1 2>/dev/null
read -r first </proc/1/comm
[ "$first" = {_PODMANS_INIT} ] || kill -s "$1" 1
"""
_RUNNING = ("running", "paused", "restarting")


@dataclass(frozen=True)
class ContainerJobs:
    """The jobs that an engine keeps; see `FolderJobs` for what its scripts do."""

    engine: Engine

    def tell(self, name: str | None = None) -> str:
        find = self._find(JOB_LABEL)
        if name is not None:
            short = self._find(JOB_LABEL, f"{TYPED_LABEL}={name}")
            find = f"{self._find(f'{JOB_LABEL}={name}')} && {short}"
        inspect = command_line(self.engine("container", "inspect"))
        return f'ids=$({find}) || exit\n[ -z "$ids" ] || {inspect} $ids'

    def _find(self, *labels: str) -> str:
        filters = (f"--filter=label={label}" for label in labels)
        return f"{command_line(self.engine('ps', '--all', '--quiet', *filters))} {MINE}"

    def follow(self, key: str, stdout: int, stderr: int) -> str:
        """Follow the log behind these bytes; the engine itself knows only lines."""
        show = endable(self.engine("logs", "--follow", key))
        if not stdout and not stderr:
            return until_hang_up(show)
        return _beyond(until_hang_up(f"{show} 2>&1 1>&5 5>&-"), stdout, stderr)

    def feed(self, key: str) -> str:
        """Return the script that gives it the script's own stdin, and prints a line at its end.

        `cat` ends with the connection, and the engine's client only with the job.
        """
        attach = command_line(docker.attach_argv(self.engine, key, ""))
        return f"exec 4>&1\n{{ cat 4>&-; echo >&4; }} | {attach} >/dev/null 2>&1 4>&-\n"

    def attach(self, key: str, keys: str | None, *, first: bool) -> str:
        """Return the script that connects its terminal to the job's, or at `first` starts it."""
        return f"{command_line(docker.attach_argv(self.engine, key, keys, start=first))}\n"

    def rest(self, key: str, stdout: int, stderr: int) -> str:
        show = command_line(self.engine("logs", key))
        return _beyond(f"{show} 2>&1 1>&5 5>&-", stdout, stderr)

    def log(self, key: str, lines: int | None, *, follow: bool, since: int | None = None) -> str:
        show = docker.logs_argv(self.engine, key, lines, follow=follow, since=since)
        return until_hang_up(endable(show)) if follow else command_line(show)

    def signal(self, key: str, signal: str) -> str:
        """Signal the container's init, which passes it on to the whole group.

        Podman's does not; there a shell in the container signals all, if the image has one.
        """
        by_init = command_line(self.engine("kill", f"--signal={signal}", key))
        if self.engine.kind.init_tells_all or signal == "KILL":
            return by_init
        to_all = self.engine("exec", key, "sh", "-c", _TELL_ALL, "sh", signal)
        return f"{command_line(to_all)} 2>/dev/null || {by_init}"

    def stop(self, key: str, *, force: bool) -> str:
        if force:
            return self.signal(key, "KILL")
        return docker.ended_script(self.engine, self.engine("stop", key), key)

    def remove(self, key: str) -> str:
        return docker.ended_script(self.engine, docker.remove_argv(self.engine, key), key)


def _beyond(show: str, stdout: int, stderr: int) -> str:
    """Return the script that leaves out the first bytes of both streams of `show`."""
    return f"{{ {{\n{show}\n}} | tail -c +{stderr + 1} >&2 5>&-; }} 5>&1 | tail -c +{stdout + 1}\n"


@understood("the container engine")
def read(printed: str) -> list[Job]:
    """Return the jobs that the script of `tell` printed.

    Only of containers that jlr made: a label of an image names no container of its own.
    """
    jobs = [(_job(each), each["Name"].lstrip("/")) for each in document(printed or "[]")]
    return [job for job, name in jobs if is_name(name) and job.name == name]


def _job(inspected: Mapping[str, Any]) -> Job:
    state, config = inspected["State"], inspected["Config"]
    labels = config.get("Labels") or {}
    status = state.get("Status", "")
    running, created = status in _RUNNING, status == "created"
    over = not running and not created
    killed, code = state.get("OOMKilled"), state.get("ExitCode")
    return Job(
        id=inspected["Id"],
        name=labels.get(JOB_LABEL, ""),
        state="running" if running else "created" if created else "ended",
        command=labels.get(COMMAND_LABEL, ""),
        exit_code=code if over and isinstance(code, int) else None,
        since=_seconds(state.get("StartedAt")),
        ended=_seconds(state.get("FinishedAt")) if over else None,
        container=inspected["Name"].lstrip("/"),
        gpus=labels.get(GPUS_LABEL) or None,
        remove=bool(labels.get(REMOVE_LABEL)),
        terminal=bool(config.get("Tty")),
        interactive=bool(config.get("OpenStdin")) and not config.get("Tty"),
        detail="killed: its memory was used up" if killed else state.get("Error") or None,
        mark=labels.get(START_LABEL, ""),
    )


def _seconds(stamp: str | None) -> float | None:
    """Return seconds since the epoch, `None` for the year 1."""
    stamp = re.sub(r"\.\d+", "", stamp or "0001-01-01T00:00:00Z")
    return moment(datetime.fromisoformat(stamp).timestamp())
