"""What docker says when it refuses, told apart by what a person would do about it."""

from __future__ import annotations

from jlremote.errors import Busy, JlrError, Usage
from jlremote.host.contract import Completed
from jlremote.runtimes.contract import ContainerSpec
from jlremote.runtimes.docker.old_docker import KNOWS_NO_GPUS
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.engine.engine_errors import EngineUnusable, engine_error, reason
from jlremote.runtimes.options.refused_options import refusal
from jlremote.text import one_line, printable

# Docker's words, and podman's.
_NO_IMAGE = ("no such image", "image not known")
_PORT_TAKEN = ("port is already allocated", "address already in use")
_NO_GPUS = (
    "could not select device driver",
    "nvidia-container-cli",
    "unresolvable cdi devices",
    "unknown runtime specified nvidia",
    "invalid runtime name: nvidia",
)


def image_missing(failed: Completed) -> bool:
    """Tell whether a container was not created because its image is not on the host."""
    return any(words in failed.stderr.lower() for words in _NO_IMAGE)


def init_missing(failed: Completed) -> bool:
    """Tell whether podman lacks the program that `--init` puts into a container."""
    return "container-init binary not found" in failed.stderr.lower()


def program_refused(failed: Completed) -> bool:
    """Tell whether a container was not started because its program is none."""
    complaint = failed.stderr.lower()
    return "container process" in complaint and "exec" in complaint


def ended_error(engine: Engine, name: str, image: str, said: str) -> JlrError:
    """Return that a new container has ended at once, as one does whose image has no shell.

    Args:
        engine: whose it was.
        name: the container's name.
        image: what it was made of.
        said: its last words.
    """
    return JlrError(
        f"the container `{name}` ended at once: {one_line(said) or 'it says nothing'}",
        hint="an image for jlr has `sh`, Python and Jupyter; try it on the host: "
        f"`{engine.shown('run', '--rm', image, 'sh', '-c', 'true')}`",
    )


def start_error(engine: Engine, name: str, why: str = "it ends at once") -> JlrError:
    """Return that a container which was there does not go on."""
    hint = f"`{engine.shown('logs', name)}` on the host may say why"
    if "paused" in why:
        hint = f"let it go on: `{engine.shown('unpause', name)}` on the host"
    return JlrError(f"the container `{name}` does not start: {why}", hint=hint)


def creation_error(engine: Engine, spec: ContainerSpec, failed: Completed) -> JlrError:
    """Return what kept a container from being created or started."""
    general = engine_error(engine, failed)
    if isinstance(general, EngineUnusable):
        return general
    if failed.stderr.lower().startswith(KNOWS_NO_GPUS):
        return JlrError(
            f"{engine.name} on the host is older than 19.03: {reason(failed)}",
            hint="update it there; where NVIDIA's old tool is installed, `--runtime nvidia-docker` "
            "does without",
        )
    if refused := refusal(spec.options, failed.stderr, reason(failed)):
        return refused
    if cause := _misuse(engine, spec, failed) or _lack(engine, spec, failed):
        return cause
    return JlrError(
        f"the container `{spec.name}` was not created: {reason(failed)}",
        hint="`--verbose` shows the command",
    )


def _misuse(engine: Engine, spec: ContainerSpec, failed: Completed) -> JlrError | None:
    """Return what is wrong with what was asked for."""
    complaint = failed.stderr.lower()
    if "invalid reference format" in complaint or "must be lowercase" in complaint:
        return Usage(
            f"`{printable(spec.image)}` cannot be an image's name",
            hint="write `NAME[:TAG]`, in lower case",
        )
    if complaint.removeprefix("error: ").startswith(("invalid argument", "unknown flag")):
        return Usage(
            f"{engine.name} on the host does not take an option: {reason(failed)}",
            hint="options are passed on as they are; "
            f"`{engine.shown('create', '--help')}` there describes them",
        )
    return None


def _lack(engine: Engine, spec: ContainerSpec, failed: Completed) -> JlrError | None:
    """Return what the host does not have for it."""
    complaint = failed.stderr.lower()
    if "already in use by" in complaint:
        return Busy(
            f"a container `{spec.name}` was made by somebody else just now",
            hint="start again to use it, or choose another name",
        )
    if any(words in complaint for words in _PORT_TAKEN):
        return Busy(
            f"a port of the host is in use: {reason(failed)}",
            hint="publish another one behind `--`, or none: jlr reaches Jupyter without",
        )
    if any(words in complaint for words in _NO_GPUS):
        return JlrError(
            f"the host gives no GPUs to containers: {reason(failed)}",
            hint="the NVIDIA container toolkit may be missing there; `--gpus` asked for "
            f"`{spec.gpus}`",
        )
    if "no space left" in complaint:
        return JlrError(
            f"no space is left on the host: {reason(failed)}",
            hint=space_hint(engine),
        )
    return None


def space_hint(engine: Engine) -> str:
    """Return where to look when a container's disk is full."""
    shown = engine.shown("system", "df")
    return f"`{shown}` on the host shows what takes it; a folder in memory has a size of its own"
