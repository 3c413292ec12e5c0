"""What docker says when it refuses, told apart by what a person would do about it."""

from __future__ import annotations

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.host.script import Completed
from jlremote.runtimes.contract import ContainerSpec

COMMAND_NOT_FOUND = 127


def engine_error(engine: str, failed: Completed) -> JlrError:
    """Return what kept any of the engine's commands from working."""
    complaint = failed.stderr.lower()
    if failed.status == COMMAND_NOT_FOUND or "docker: not found" in complaint:
        return JlrError(
            f"`{engine}` is not installed on the host",
            hint="install it there, or start without containers: `--runtime none`",
        )
    if "permission denied" in complaint:
        return JlrError(
            f"the user on the host may not use `{engine}`: {failed.complaint}",
            hint=f"ask for membership of its group: `sudo usermod -aG {engine} USER`",
        )
    if "cannot connect" in complaint or "is the docker daemon running" in complaint:
        return JlrError(
            f"the `{engine}` daemon does not run on the host: {failed.complaint}",
            hint=f"start it there: `sudo systemctl start {engine}`",
        )
    return JlrError(f"`{engine}` failed: {failed.complaint}")


def image_missing(failed: Completed) -> bool:
    """Tell whether a container was not created because its image is not on the host."""
    return "no such image" in failed.stderr.lower()


def creation_error(spec: ContainerSpec, failed: Completed) -> JlrError:
    """Return what kept a container from being created or started."""
    complaint = failed.stderr.lower()
    if "invalid reference format" in complaint:
        return Usage(
            f"`{spec.image}` cannot be an image's name",
            hint="write `NAME[:TAG]`, in lower case",
        )
    if "already in use by container" in complaint:
        return Busy(
            f"a container `{spec.name}` was made by somebody else just now",
            hint="start again to use it, or choose another name",
        )
    if "could not select device driver" in complaint or "nvidia-container-cli" in complaint:
        return JlrError(
            f"the host gives no GPUs to containers: {failed.complaint}",
            hint="the NVIDIA container toolkit may be missing there; `--gpus` asked for "
            f"`{spec.gpus}`",
        )
    if "no space left" in complaint:
        return JlrError(
            f"no space is left on the host: {failed.complaint}",
            hint="`docker system df` there shows what takes it",
        )
    if "permission denied" in complaint or "docker daemon" in complaint:
        return engine_error("docker", failed)
    return JlrError(
        f"the container `{spec.name}` was not created: {failed.complaint}",
        hint="`-v` shows the command",
    )


def image_not_found(image: str, host: str, failed: Completed) -> NotFound:
    """Return why an image could not be had from its registry."""
    return NotFound(
        f"the image `{image}` is not on `{host}` and cannot be pulled: {failed.complaint}",
        hint="check its name and tag; a private registry wants `docker login` on the host",
    )
