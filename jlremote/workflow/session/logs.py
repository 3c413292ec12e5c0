"""`jlr logs`: the log of a session's Jupyter server."""

from __future__ import annotations

from collections.abc import Iterator

from jlremote.errors import NotFound
from jlremote.host.shell_text import command_line, until_hang_up
from jlremote.host.sudo import endable
from jlremote.jupyter import scripts
from jlremote.runtimes.contract import Runtime
from jlremote.runtimes.docker.docker_commands import logs_argv
from jlremote.runtimes.table import runtime_named
from jlremote.text import printable
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_of
from jlremote.workflow.selection import session_selection


def log(selector: str | None, context: Context, *, follow: bool, tail: int) -> Iterator[str]:
    """Yield the log of a session's server as it comes, without control characters.

    A server that jlr did not launch writes to its container's log, so that one is shown. Begin with
    the last `tail` lines, and `follow` with later ones.

    Raises:
        NotFound: there is no such session or job, or it has no log.
    """
    record = session_selection.chosen(selector, context, or_job=True)
    runtime = runtime_named(record.runtime)
    host = link_of(record, context)
    with host.stream(_script(runtime, record.name, tail, follow=follow)) as output:
        for text in output:
            yield printable(text)
    if output.status not in (0, None):
        raise NotFound(
            f"there is no log of `{record.host}/{record.name}`",
            hint="`jlr start` may never have launched its server",
        )


def _script(runtime: Runtime, name: str, tail: int, *, follow: bool) -> str:
    show = scripts.show_log(runtime, name, lines=tail, follow=follow)
    if runtime.engine is None:
        return show
    # Attached to stdin, because only stdin's end reaches a process in a container.
    own = command_line((*runtime.relay_prefix(name), "sh", "-c", show))
    others = f"{endable(logs_argv(runtime.engine, name, tail, follow=follow))} 2>&1"
    # The first command ends with status 6 if there is no such file.
    return f"{own}\nstatus=$?\n[ $status = 6 ] || exit $status\n{until_hang_up(others)}"
