"""What docker says when it refuses, told apart by what a person would do about it."""

from __future__ import annotations

from jlremote.errors import Busy, JlrError, Usage
from jlremote.host.script import Completed
from jlremote.runtimes.contract import ContainerSpec
from jlremote.runtimes.engine import Engine
from jlremote.runtimes.refused_options import refusal
from jlremote.text import printable

COMMAND_NOT_FOUND = 127
# Followed, by version, by "the Docker daemon socket" or "the docker API". Alone, `permission
# denied` may also come from a file in a container.
_NOT_PERMITTED = "permission denied while trying to connect"
_NOT_RUNNING = ("cannot connect to the docker", "is the docker daemon running")
_PREFIXES = ("docker: ", "Error response from daemon: ", "Error: ")


def reason(failed: Completed) -> str:
    """Return why docker refused, on one line that is safe to show.

    Its first line tells; what follows is advice, or says only that it failed.
    """
    lines = printable(failed.stderr).splitlines()
    told = [line.strip() for line in lines if line.strip() and not line.startswith("WARNING")]
    text = told[0] if told else failed.complaint
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    return text


def engine_error(engine: Engine, failed: Completed) -> JlrError:
    """Return what kept any of the engine's commands from working."""
    complaint = failed.stderr.lower()
    if failed.status == COMMAND_NOT_FOUND or "docker: not found" in complaint:
        return JlrError(
            f"`{engine.name}` is not installed on the host",
            hint="install it there, or start without containers: `--runtime none`",
        )
    if _NOT_PERMITTED in complaint:
        return JlrError(
            f"the user on the host may not use `{engine.name}`: {reason(failed)}",
            hint=f"ask for membership of its group: `sudo usermod -aG {engine.name} USER`",
        )
    if any(phrase in complaint for phrase in _NOT_RUNNING):
        return JlrError(
            f"the `{engine.name}` daemon does not run on the host: {reason(failed)}",
            hint=f"start it there: `sudo systemctl start {engine.name}`",
        )
    return JlrError(f"`{engine.name}` failed: {reason(failed)}")


def image_missing(failed: Completed) -> bool:
    """Tell whether a container was not created because its image is not on the host."""
    return "no such image" in failed.stderr.lower()


def program_refused(failed: Completed) -> bool:
    """Tell whether a container was not started because its program is none."""
    complaint = failed.stderr.lower()
    return "container process" in complaint and "exec" in complaint


def creation_error(engine: Engine, spec: ContainerSpec, failed: Completed) -> JlrError:
    """Return what kept a container from being created or started."""
    complaint = failed.stderr.lower()
    if refused := refusal(spec.options, failed.stderr, reason(failed)):
        return refused
    if "invalid reference format" in complaint:
        return Usage(
            f"`{printable(spec.image)}` cannot be an image's name",
            hint="write `NAME[:TAG]`, in lower case",
        )
    if complaint.startswith("invalid argument"):
        return Usage(
            f"{engine.name} on the host does not take an option: {reason(failed)}",
            hint="options are passed on as they are; "
            f"`{engine.shown('create', '--help')}` there describes them",
        )
    if "already in use by container" in complaint:
        return Busy(
            f"a container `{spec.name}` was made by somebody else just now",
            hint="start again to use it, or choose another name",
        )
    if "could not select device driver" in complaint or "nvidia-container-cli" in complaint:
        return JlrError(
            f"the host gives no GPUs to containers: {reason(failed)}",
            hint="the NVIDIA container toolkit may be missing there; `--gpus` asked for "
            f"`{spec.gpus}`",
        )
    if "no space left" in complaint:
        return JlrError(
            f"no space is left on the host: {reason(failed)}",
            hint=f"`{engine.shown('system', 'df')}` there shows what takes it",
        )
    if any(phrase in complaint for phrase in (_NOT_PERMITTED, *_NOT_RUNNING)):
        return engine_error(engine, failed)
    return JlrError(
        f"the container `{spec.name}` was not created: {reason(failed)}",
        hint="`--verbose` shows the command",
    )
