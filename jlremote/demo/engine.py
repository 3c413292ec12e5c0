"""What a container engine on this machine offers the demo."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

from jlremote.errors import JlrError, NotFound
from jlremote.text import printable

ANSWER_SECONDS = 10.0

# The images of Jupyter's own Docker Stacks at their two homes, then whatever calls itself so.
_KNOWN = (r"quay\.io/jupyter/", r"jupyter/[^/:]*-notebook\b", r".*jupyter(?!hub)")


def jupyter_image() -> str:
    """Return an image on this machine that has JupyterLab by its name; nothing is ever pulled.

    Raises:
        NotFound: there is none.
        JlrError: no engine can be used here; the message says why.
    """
    images = _docker("images", "--filter", "dangling=false", "--format={{.Repository}}:{{.Tag}}")
    chosen = best(images.splitlines())
    if chosen is None:
        raise NotFound(
            "the engine has no image with `jupyter` in its name",
            hint="pull one, `docker pull quay.io/jupyter/minimal-notebook`, or name one: `--image`",
        )
    return chosen


def best(images: Iterable[str]) -> str | None:
    """Return the likeliest of some images' names to hold JupyterLab, `None` for none of them."""
    names = tuple(images)
    matches = (name for kind in _KNOWN for name in names if re.match(kind, name))
    return next(matches, None)


def addresses() -> frozenset[str]:
    """Return the addresses of all containers that run here; empty where that cannot be known."""
    template = "{{range .NetworkSettings.Networks}}{{println .IPAddress}}{{end}}"
    try:
        running = _docker("ps", "--quiet").split()
        return frozenset(_docker("container", "inspect", "--format", template, *running).split())
    except JlrError:
        return frozenset()


def check_reach() -> None:
    """Refuse an engine whose containers have no address that this machine reaches.

    Raises:
        JlrError: it is such a one, or none at all; the message says which.
    """
    if not _docker("context", "inspect", "--format={{.Endpoints.docker.Host}}").startswith("unix:"):
        raise JlrError("the engine is on another machine")
    facts = _docker("info", "--format={{.OperatingSystem}} {{.SecurityOptions}}")
    if "Docker Desktop" in facts or "name=rootless" in facts:
        raise JlrError("the engine's containers cannot be reached from outside of it")


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ("docker", *arguments),  # noqa: S607  # the one that the person would run
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise JlrError("there is no `docker` on this machine") from None
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise JlrError(f"`docker` does not answer: {failure}") from failure
    if done.returncode != 0:
        complaint = printable(done.stderr.strip().rpartition("\n")[2])
        raise JlrError(f"`docker` refuses: {complaint}")
    return done.stdout
