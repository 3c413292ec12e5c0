"""`jlr logs`: what the Jupyter server of a session says."""

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
    """Give the log of a session's server as it comes, fit to be shown.

    A server that was not launched by jlr writes to its container's log, so that is shown then.

    Args:
        selector: `NAME` or `HOST/NAME`, the latest session by default.
        context: the laptop's side.
        follow: whether to go on with what is written later.
        tail: how many lines of what is there to begin with.

    Raises:
        NotFound: there is no such session and no job, or no log.
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
            hint="the server may never have been launched by jlr",
        )


def _script(runtime: Runtime, name: str, tail: int, *, follow: bool) -> str:
    show = scripts.show_log(runtime, name, lines=tail, follow=follow)
    # With stdin attached, whose end is all that ends a process in a container.
    own = command_line((*runtime.relay_prefix(name), "sh", "-c", show))
    if runtime.engine is None:
        return own
    others = f"{endable(logs_argv(runtime.engine, name, tail, follow=follow))} 2>&1"
    # 6 is what the first one says when there is no such file.
    return f"{own}\nstatus=$?\n[ $status = 6 ] || exit $status\n{until_hang_up(others)}"
