"""Installation of a container's Python packages."""

from __future__ import annotations

import re
from collections.abc import Callable

from jlremote.errors import JlrError
from jlremote.hosts.start_context import StartContext
from jlremote.place.host.contract import run_script
from jlremote.place.runtimes.docker import docker_errors
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.scripts import packages
from jlremote.text import one_line, printable

_LAST_LINES = 6


def install(
    start: StartContext, wanted: tuple[str, ...], script: Callable[[tuple[str, ...]], str]
) -> None:
    """Install packages (in pip's notation) by `script`, as a step that shows pip's last line.

    Raises:
        JlrError: pip failed; with its last lines.
    """
    if not wanted:
        return
    doing = start.runtime.in_image(start.name, script(wanted))
    said, begun = list[str](), ""
    with start.context.progress.step(one_line(f"Install {', '.join(wanted)}")):
        with start.host.stream(doing) as output:
            for text in output:
                *lines, begun = re.split(r"[\r\n]+", begun + text)
                said += [line for line in lines if line.strip()]
                if said:
                    start.context.progress.advance(one_line(said[-1]))
        if output.status != 0:
            raise _failed(start, [*said, begun])


def restore(start: StartContext, container: Container) -> bool:
    """Install a container's packages again if they are gone; return whether they were.

    A `/tmp` in memory loses them when the container stops. A failure is only noted, as the session
    may be of use without.
    """
    wanted = container.options.packages
    if not wanted:
        return False
    looked = run_script(start.host, start.runtime.in_image(start.name, packages.are_there(wanted)))
    if looked.status != packages.GONE:
        return False
    try:
        install(start, wanted, packages.install)
    except JlrError as failure:
        start.note(f"`{start.name}` has lost its packages: {failure.message}")
    return True


def _failed(start: StartContext, said: list[str]) -> JlrError:
    lines = [printable(line).rstrip() for line in said if line.strip()]
    last = "\n".join(lines[-_LAST_LINES:]) or "(no output)"
    hint = "check the names; `-e PIP_INDEX_URL=…` lets the container reach another index"
    if start.runtime.has_containers and "no space left" in last.lower():
        hint = docker_errors.space_hint(start.engine)
    return JlrError(
        f"cannot install the packages in `{start.name}`; pip's last lines:\n{last}", hint=hint
    )
