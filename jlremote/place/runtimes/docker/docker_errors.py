"""The errors of containers that cannot be created or started, and the old tool for GPUs.

Before 19.03 docker's `create` has no `--gpus`; later ones have it in vain if dockerd did not find
NVIDIA's toolkit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.place.host.contract import Completed, error_lines
from jlremote.place.runtimes.container_options import refusal
from jlremote.place.runtimes.engine.engine_errors import EngineUnusable, engine_error, reason
from jlremote.place.runtimes.engine.engine_gpus import mend
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, Engine
from jlremote.place.runtimes.runtime import ContainerSpec
from jlremote.text import one_line, printable

# Each in docker's words, then podman's. The first says that an image is not on the host.
NO_IMAGE = re.compile("no such image|image not known", re.IGNORECASE)
_PORT_TAKEN = ("port is already allocated", "address already in use")
# A network, or the container whose network or memory was to be shared.
_NOT_THERE = re.compile(r"no such container: |no container with name or id |network .*not found")
# Podman 4 and 5; dockerd. As patterns of a shell's `case`, too.
_NO_INIT = ("container-init binary not found", "lookup init binary", '"docker-init": executable')
INIT_MISSING = "|".join(f"*'{words}'*" for words in _NO_INIT)
_NO_GPUS = re.compile(
    "could not select device driver|nvidia-container|unresolvable cdi devices"
    "|unknown runtime specified nvidia|invalid runtime name: nvidia"
)


class JustCreated(Busy):
    """Another command created a container of that name a moment ago."""


def init_missing(failed: Completed) -> bool:
    """Return whether the engine lacks the program that `--init` puts into a container."""
    return any(words in failed.stderr for words in _NO_INIT)


def program_refused(failed: Completed) -> bool:
    """Return whether a container was not started because its program cannot be run."""
    complaint = failed.stderr.lower()
    return "container process" in complaint and "exec" in complaint


def ended_error(engine: Engine, name: str, image: str, said: str) -> JlrError:
    """Return the error of a new container that ended at once, with the end of its log."""
    return JlrError(
        f"the container `{name}` ended at once: {one_line(said) or 'no reason given'}",
        hint=f"`{engine.shown('run', '--rm', image, 'sh', '-c', 'true')}` on the host tries it; "
        "an image for jlr needs `sh`, Python and Jupyter",
    )


def start_error(engine: Engine, name: str, why: str) -> JlrError:
    """Return the error of an existing container that does not start."""
    hint = f"`{engine.shown('logs', name)}` on the host may say why"
    if "paused" in why:
        hint = f"`{engine.shown('unpause', name)}` on the host resumes it"
    if _NO_GPUS.search(why.lower()):
        hint = mend(why) or hint
    return JlrError(f"the container `{name}` does not start: {why}", hint=hint)


def creation_error(engine: Engine, spec: ContainerSpec, failed: Completed, host: str) -> JlrError:
    """Return the error of a container that was not created or started."""
    general = engine_error(engine, failed)
    if isinstance(general, EngineUnusable):
        return general
    said, why = "\n".join(error_lines(failed.stderr)), reason(failed)
    complaint = said.lower()
    if complaint.startswith(KNOWS_NO_GPUS):
        return JlrError(
            f"{engine.name} on the host is older than 19.03: {why}",
            hint="`--runtime nvidia-docker` works if NVIDIA's old tool is installed; else update "
            "docker there",
        )
    if refused := refusal(spec.options, said, why):
        return refused
    if cause := _known(engine, spec, complaint, why, host):
        return cause
    kind = NotFound if _NOT_THERE.search(complaint) else JlrError
    return kind(
        f"cannot create the container `{spec.name}`: {why}",
        hint="`--verbose` shows the command and all that the engine says; `jlr config` shows what "
        "the settings add to it",
    )


def _known(
    engine: Engine, spec: ContainerSpec, complaint: str, why: str, host: str
) -> JlrError | None:
    if "invalid reference format" in complaint or "must be lowercase" in complaint:
        hint = "write `NAME[:TAG]`, in lower case"
        return Usage(f"invalid image name `{printable(spec.image)}`", hint=hint)
    if complaint.removeprefix("error: ").startswith(("invalid argument", "unknown flag")):
        hint = f"`{engine.shown('create', '--help')}` there describes its options"
        return Usage(f"{engine.name} on the host does not take an option: {why}", hint=hint)
    if "already in use by" in complaint:
        hint = "run the command again to use it, or choose another name"
        return JustCreated(f"another command has just created a container `{spec.name}`", hint=hint)
    if missing := re.search(r'exec:? "([^"/]+)": executable file not found', why):
        return NotFound(f"`{missing[1]}`: command not found in `{spec.image}`")
    if any(words in complaint for words in _PORT_TAKEN):
        hint = "jlr needs no published port: leave it out after `--`, or choose another"
        return Busy(f"a port of the host is in use: {why}", hint=hint)
    if _NO_GPUS.search(complaint):
        hint = mend(complaint) or f"run `jlr doctor {host}`, which finds the cause"
        return JlrError(f"the host gives no GPUs to containers: {why}", hint=hint)
    if "no space left" in complaint:
        return JlrError(f"no space is left on the host: {why}", hint=space_hint(engine))
    return None


def space_hint(engine: Engine) -> str:
    """Return the hint for a container whose disk is full."""
    shown = engine.shown("system", "df")
    return f"`{shown}` on the host shows what takes space; a folder in memory has its own limit"


# Docker's errors, in lower case. The second is that of a new client with an old daemon.
_TOO_OLD: Mapping[str, str] = {
    "unknown flag: --gpus": "knows no `--gpus`",
    '"--gpus" requires api version': "knows no `--gpus`",
    "could not select device driver": "has no NVIDIA toolkit for its `--gpus`",
}
KNOWS_NO_GPUS = tuple(words for words, why in _TOO_OLD.items() if "knows" in why)


def old_tool(engine: Engine, refused: Completed) -> tuple[Engine, str] | None:
    """Return NVIDIA's old tool and why it may create a container that docker refused to."""
    complaint = refused.stderr.lower()
    why = next((why for words, why in _TOO_OLD.items() if words in complaint), None)
    if engine.kind is not DOCKER.kind or why is None:
        return None
    in_front = (other for other in ENGINES.values() if other.kind.everyday == engine.kind.program)
    tool = next(other for other in in_front if other.behind_sudo == engine.behind_sudo)
    return tool, f"`{engine.name}` on the host {why}"
