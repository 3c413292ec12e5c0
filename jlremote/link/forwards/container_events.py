"""The engine's events: a container has ended, or has another address."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from jlremote.errors import JlrError
from jlremote.link.wire.protocol import bytes_of, text_of
from jlremote.place.host.shell_text import command_line, until_hang_up
from jlremote.place.host.sudo import endable
from jlremote.place.runtimes.docker.docker_commands import events_argv
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.table import runtime_named
from jlremote.ssh.interfaces import Connection, Output, Stream

log = logging.getLogger(__name__)

# It begins late, to take no time from a session's start; events of the meantime are read then.
PAUSE_SECONDS = 2
# If reading ends again and again, it is retried less and less often.
LONGEST_PAUSE_SECONDS = 60
LASTING_SECONDS = 60.0
AGAIN = "observed again"


class ContainerEvents:
    """Reads the events of a host's engines, over one connection at a time.

    It uses an SSH session only while that is spare. Without one, changes are noticed at the next
    refusal or reconnect. `tell` is called with the connection, the runtime and the event, `None` if
    some were missed.
    """

    def __init__(self, tell: Callable[[Connection, str, str | None], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._observed: set[str] = set()

    def observe(self, connection: Connection, runtime: str) -> None:
        """Read a runtime's events while the connection lives; repeating it is harmless."""
        observed = runtime_named(runtime)
        if not observed.has_containers:
            return
        with self._lock:
            if self._connection is not connection:
                self._connection, self._observed = connection, set()
            if runtime in self._observed:
                return
            self._observed.add(runtime)
        threading.Thread(
            target=self._follow, args=(connection, observed.required_engine), daemon=True
        ).start()

    def _follow(self, connection: Connection, engine: Engine) -> None:
        """Read events until the connection is gone or its session is needed."""
        reader = _lines_to(
            lambda line: self._tell(connection, engine.name, None if line == AGAIN else line)
        )
        pause, again = PAUSE_SECONDS, False
        while not connection.wait_closed(pause):
            began = time.monotonic()
            script = _script(engine, since=pause, again=again)
            try:
                if not connection.run_preemptible(bytes_of(script), reader):
                    return
            except JlrError as refused:
                log.info("containers of %s are not observed: %s", engine.name, refused)
                return
            except Exception:
                log.exception("the events of %s are read again", engine.name)
            lasted, again = time.monotonic() - began, True
            pause = (
                PAUSE_SECONDS if lasted > LASTING_SECONDS else min(2 * pause, LONGEST_PAUSE_SECONDS)
            )


def _lines_to(call: Callable[[str], None]) -> Output:
    """Return a reader of output that calls a function with each line of stdout."""
    rest = ""

    def take(stream: Stream, data: bytes) -> None:
        nonlocal rest
        if stream == "stdout":
            *lines, rest = (rest + text_of(data)).split("\n")
            for line in lines:
                call(line)

    return take


def _script(engine: Engine, *, since: int, again: bool) -> str:
    """Return the script that prints the events of the last `since` seconds and all later ones.

    With `again` it first prints `AGAIN` once the engine answers: that may have been restarted.
    """
    answers = command_line(engine("ps", "--quiet", "--last=1"))
    saying = f"{answers} >/dev/null 2>&1 || exit\necho '{AGAIN}'\n" if again else ""
    events = endable(events_argv(engine, since=f"{since}s"))
    # In braces, so that the shell reads it whole: the commands in it read stdin, too.
    return f"{{\n{saying}{until_hang_up(f'{events} 2>/dev/null')}}}\n"
