"""All forwards of a link, by session and port, and the engine's events that concern them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jlremote.errors import JlrError
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.session_forward import Ending, Listen, Locate, SessionForward
from jlremote.link.wire.protocol import bytes_of, text_of
from jlremote.link.wire.states import Condition, ForwardKey
from jlremote.place.host.shell_text import command_line, until_hang_up
from jlremote.place.host.sudo import endable
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.table import runtime_named
from jlremote.ssh.channels.session_channel import Stream
from jlremote.ssh.connection import Connection

# Reads the events of a runtime over a connection; repeating it is harmless.
Observe = Callable[[Connection, str], None]

log = logging.getLogger(__name__)

# Between two looks at the time limits of sessions; a timer would stand still in a laptop's sleep.
LIMIT_SECONDS = 10.0
# Reading events begins late, to take no time from a session's start; it misses none of them.
PAUSE_SECONDS = 2
# If reading ends again and again, it is retried less and less often.
LONGEST_PAUSE_SECONDS = 60
LASTING_SECONDS = 60.0
AGAIN = "observed again"


@dataclass(frozen=True, eq=False)
class Forwards:
    """All forwards of a link."""

    supervisor: Supervisor
    locate: Locate
    listen: Listen
    observe: Observe
    ending: Ending = lambda *_: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _forwards: dict[ForwardKey, SessionForward] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __len__(self) -> int:
        return len(self._forwards)

    def add(
        self,
        key: ForwardKey,
        local_port: int,
        endpoint: Endpoint,
        connection: Connection,
        *,
        seen: bool = True,
    ) -> SessionForward:
        """Forward `local_port` (0 for any) to `endpoint`; on the same port, only redirect.

        The endpoint is proved first, unless it was just `seen` there. Raise `Busy` if the port is
        taken.
        """
        self.observe(connection, endpoint.place.runtime_name)
        with self._lock:
            present = self._forwards.get(key)
            if present is not None and local_port in (0, present.local_port):
                present.replace(endpoint, connection, seen=seen)
                return present
            proof = self.supervisor, self.locate, self.ending
            forward = SessionForward(key, endpoint, connection, *proof, seen=seen)
            forward.listen(self.listen, local_port)
            self._forwards[key] = forward
        if present is not None:
            present.stop()
        return forward

    def find(self, key: ForwardKey) -> SessionForward | None:
        return self._forwards.get(key)

    def remove(self, key: ForwardKey) -> bool:
        """Stop a forward; return whether there was one."""
        with self._lock:
            forward = self._forwards.pop(key, None)
        if forward is not None:
            forward.stop()
        return forward is not None

    def heed_limits(self) -> None:
        """Tell of the time limits of sessions until the forwards end."""
        while not self._ended.wait(LIMIT_SECONDS):
            for forward in tuple(self._forwards.values()):
                forward.heed_limit()

    def stop(self) -> None:
        self._ended.set()
        for key in tuple(self._forwards):
            self.remove(key)

    def prove_all(self, connection: Connection) -> None:
        """Prove every forward on a new connection, all at the same time."""
        for forward in tuple(self._forwards.values()):
            self.observe(connection, forward.endpoint.place.runtime_name)
            forward.prove(connection)

    def changed(self, connection: Connection, runtime: str, event: str | None) -> None:
        """Prove again the forwards that an event is about, or all if events were missed."""
        for forward in tuple(self._forwards.values()):
            place, target = forward.endpoint.place, forward.endpoint.target
            about = filter(None, (place.container_id, target.network if target else ""))
            concerns = event is None or any(one in event for one in about)
            is_there = place.runtime_name == runtime and forward.connection is connection
            if is_there and concerns:  # a proof that is under way may not have seen it
                forward.prove_again(connection)

    def to_json(self, link: Condition) -> list[dict[str, Any]]:
        """Return all forwards for `status`; `link` is the link's own condition."""
        return [forward.to_json(link) for forward in tuple(self._forwards.values())]


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
        pause, again, rest = PAUSE_SECONDS, False, ""

        def take(stream: Stream, data: bytes) -> None:
            nonlocal rest
            if stream == "stdout":
                *lines, rest = (rest + text_of(data)).split("\n")
                for line in lines:
                    self._tell(connection, engine.name, None if line == AGAIN else line)

        while not connection.wait_closed(pause):
            began = time.monotonic()
            script = _script(engine, since=pause, again=again)
            try:
                if not connection.run_preemptible(bytes_of(script), take):
                    return
            except JlrError as refused:
                log.info("containers of %s are not observed: %s", engine.name, refused)
                return
            except Exception:
                log.exception("the events of %s are read again", engine.name)
            lasts, again = time.monotonic() - began > LASTING_SECONDS, True
            pause = PAUSE_SECONDS if lasts else min(2 * pause, LONGEST_PAUSE_SECONDS)


def _script(engine: Engine, *, since: int, again: bool) -> str:
    """Return the script that prints the events of the last `since` seconds and all later ones.

    With `again` it first prints `AGAIN` once the engine answers: that may have been restarted.
    """
    answers = command_line(engine("ps", "--quiet", "--last=1"))
    saying = f"{answers} >/dev/null 2>&1 || exit\necho '{AGAIN}'\n" if again else ""
    names = ("die", "died", "rename", "connect", "disconnect")  # what ends, renames or moves one
    filters = (f"--filter=event={name}" for name in names)
    events = endable(engine("events", f"--since={since}s", *filters))
    # In braces, so that the shell reads it whole: the commands in it read stdin, too.
    return f"{{\n{saying}{until_hang_up(f'{events} 2>/dev/null')}}}\n"
