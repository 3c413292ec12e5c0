"""The Python packages of a new container."""

from __future__ import annotations

import re

from jlremote.errors import JlrError
from jlremote.runtimes import packages
from jlremote.text import one_line, printable
from jlremote.workflow.undertaking import Undertaking

_LAST_LINES = 6


def install(start: Undertaking) -> None:
    """Install what was asked for, as a step that shows pip's latest words.

    Raises:
        JlrError: pip did not, with its last lines; the container is taken back with the start.
    """
    wanted = start.request.options.packages
    if not wanted:
        return
    script = start.runtime.inside(start.name, packages.install(wanted))
    said, begun = list[str](), ""
    with start.context.progress.step(one_line(f"Install {', '.join(wanted)}")):
        with start.host.stream(script) as output:
            for text in output:
                *lines, begun = re.split(r"[\r\n]+", begun + text)
                said += [line for line in lines if line.strip()]
                if said:
                    start.context.progress.advance(one_line(said[-1]))
        if output.status != 0:
            raise _failed(start, [*said, begun])


def _failed(start: Undertaking, said: list[str]) -> JlrError:
    lines = [printable(line).rstrip() for line in said if line.strip()]
    last = "\n".join(lines[-_LAST_LINES:]) or "it says nothing"
    return JlrError(
        f"the packages could not be installed in `{start.name}`; pip's last words:\n{last}",
        hint="the container needs a way to the index, such as `-e PIP_INDEX_URL=…`, and names that "
        "it knows",
    )
