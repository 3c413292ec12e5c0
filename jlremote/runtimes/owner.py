"""The user of the host who owns a container."""

from __future__ import annotations

from collections.abc import Mapping

from jlremote.host.contract import USER_LABEL, Completed
from jlremote.runtimes.contract import Container
from jlremote.text import one_line

# The step that names the user on the host.
WHO = {"user": "id -un || id -u"}


def other_owner(container: Container, results: Mapping[str, Completed]) -> str | None:
    """Return the other user who owns a container, `None` if it is one's own or of no user.

    `results` has that of the step `WHO`. A label that comes from an image names no owner.
    """
    if "user" not in results:
        return None
    owner = labelled(container)
    return owner if owner not in ("", results["user"].stdout.strip()) else None


def labelled(container: Container) -> str:
    """Return the user in the label of a container that jlr made, empty for no user."""
    if not (container.is_session or container.is_job):
        return ""
    return one_line(container.labels.get(USER_LABEL, ""))
