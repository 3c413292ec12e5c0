"""Variables of `--env` for the Jupyter server in a container that exists.

They hold until the server is stopped. The session's folder keeps their names; their values, which
may be secrets, are nowhere but in the server's process.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError
from jlremote.hosts.requests import StartContext
from jlremote.jupyter import scripts
from jlremote.jupyter.endpoint import Server
from jlremote.place.host.contract import RECORD, Host, run_script
from jlremote.place.host.shell_text import command_line, stdin_of
from jlremote.place.runtimes.runtime import Container, Runtime
from jlremote.place.runtimes.scripts import variables


def give(start: StartContext, container: Container) -> StartContext:
    """Give the next server in an existing container the variables of `--env`.

    They go by stdin into a file that the launch reads and deletes, as arguments can be read by all
    users of the host. A launch that joins another one leaves it: that may end, and this one's turn
    come; see `take_back`.

    Raises:
        Usage: no shell takes such a name.
        JlrError: the file cannot be written.
    """
    asked = _asked(start, container)
    if not asked:
        return start
    _, text = variables.parted(asked)
    file = f'"$directory/{scripts.GIVEN}{start.launch_id}"'
    directory = scripts.session_directory(start.runtime, start.name)
    write = f'{directory}umask 077; mkdir -p "$directory" && cat >{file}'
    argv = (*start.runtime.relay_prefix(start.name), "sh", "-c", write)
    given = replace(start, environment=_TAKE.format(file=file, names=shlex.join(asked)))
    start.undo.callback(take_back, given)
    done = run_script(start.host, f"{command_line(argv)} {stdin_of(text)}")
    if done.status != 0:
        raise JlrError(f"cannot give Jupyter its variables: {done.complaint}")
    return given


# Nothing is launched without them, where a stop or the end of this start has deleted them.
_TAKE = f"""\
if [ ! -e {{file}} ]; then
  rm -f "$directory/abandoned-$launch"; echo 1 >"$directory/exit"; exit 1
fi
. {{file}}; rm -f {{file}}
printf '%s ' {{names}} >"$directory/{scripts.VARIABLES}"
"""


def explain(start: StartContext) -> None:
    """Say how long variables hold, if the server that was launched was given any."""
    if start.runtime.has_containers and start.environment:
        start.note(
            f"`--env` holds for Jupyter in `{start.name}` until a stop, and not for the container"
        )


def take_back(start: StartContext) -> None:
    """Delete the file of variables that no launch has read."""
    if start.runtime.has_containers and start.environment:
        delete = scripts.forget_variables(start.runtime, start.name, start.launch_id)
        with suppress(JlrError):
            run_script(start.host, start.runtime.inside(start.name, delete))


def lacking(start: StartContext, container: Container, server: Server) -> bool:
    """Return whether a running server lacks variables of `--env`, or has other values."""
    if not start.runtime.has_containers or not (asked := _asked(start, container)):
        return False
    try:
        _, has = _of(start.host, start.runtime, start.name, server)
    except JlrError:  # then they may differ
        return True
    return any(has.get(name) != value for name, value in asked.items())


def given(host: Host, runtime: Runtime, name: str, server: Server) -> tuple[str, ...]:
    """Return the variables that a server was given by `--env`, `NAME=VALUE`.

    Raises:
        JlrError: it was given some, and they cannot be read.
    """
    names, has = _of(host, runtime, name, server)
    return tuple(f"{name}={has[name]}" for name in names if name in has)


def _asked(start: StartContext, container: Container) -> dict[str, str]:
    items = [item.partition("=") for item in start.request.options.environment]
    has = container.options.environment
    return {name: value for name, _, value in items if f"{name}={value}" not in has}


def _of(
    host: Host, runtime: Runtime, name: str, server: Server
) -> tuple[list[str], dict[str, str]]:
    script = scripts.show_variables(runtime, name, server.pid)
    done = run_script(host, runtime.inside(name, script))
    names, printed, environment = done.stdout.partition(RECORD)
    if done.status != 0 and (names or not printed):
        raise JlrError(
            f"cannot read the variables of Jupyter in `{name}`: {done.complaint}",
            hint=f"`jlr stop {host.name}/{name}`, and `jlr start` with its `--env` again",
        )
    items = (item.partition("=") for item in environment.split("\0"))
    return names.split(), {name: value for name, _, value in items}
