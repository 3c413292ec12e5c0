"""The container engine on this machine, as far as the demo needs it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

from jlremote.errors import JlrError, NotFound
from jlremote.text import printable, reason_of

ANSWER_SECONDS = 10.0

# The images of Jupyter's Docker Stacks at their two homes, then other names with `jupyter`.
_KNOWN = (r"quay\.io/jupyter/", r"jupyter/[^/:]*-notebook\b", r".*jupyter(?!hub)")


def jupyter_image() -> str:
    """Return an image on this machine whose name says that it has JupyterLab; pull nothing.

    Raises:
        NotFound: there is no such image.
        JlrError: no engine can be used.
    """
    images = _docker("images", "--filter", "dangling=false", "--format={{.Repository}}:{{.Tag}}")
    chosen = best(images.splitlines())
    if chosen is None:
        raise NotFound(
            "the engine has no image with `jupyter` in its name",
            hint="`docker pull quay.io/jupyter/minimal-notebook`, or name an image with `--image`",
        )
    return chosen


def best(images: Iterable[str]) -> str | None:
    """Return the image most likely to have JupyterLab, `None` if none is likely."""
    names = tuple(images)
    matches = (name for kind in _KNOWN for name in names if re.match(kind, name))
    return next(matches, None)


def addresses() -> frozenset[str]:
    """Return the addresses of all running containers; empty if the engine does not answer."""
    template = "{{range .NetworkSettings.Networks}}{{println .IPAddress}}{{end}}"
    try:
        running = _docker("ps", "--quiet").split()
        return frozenset(_docker("container", "inspect", "--format", template, *running).split())
    except JlrError:
        return frozenset()


def check_here() -> None:
    """Check that the engine runs on this machine, for the demo mounts a folder; else `JlrError`."""
    if not _docker("context", "inspect", "--format={{.Endpoints.docker.Host}}").startswith("unix:"):
        raise JlrError("the engine is on another machine")


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ("docker", *arguments),  # noqa: S607  # the one that the user would run
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise JlrError("`docker` is not installed on this machine") from None
    except subprocess.TimeoutExpired as failure:
        raise JlrError(f"`docker` did not answer within {ANSWER_SECONDS:.0f} s") from failure
    except OSError as failure:
        raise JlrError(f"cannot run `docker`: {reason_of(failure)}") from failure
    if done.returncode != 0:
        complaint = printable(done.stderr.strip().rpartition("\n")[2])
        raise JlrError(f"`docker` refuses: {complaint}")
    return done.stdout
