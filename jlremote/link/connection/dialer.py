"""The login to the host, and the end of what served the last connection there."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.laptop.secrets import Secrets
from jlremote.link.connection.elevation import Elevation
from jlremote.link.connection.liveness import Probing
from jlremote.link.connection.login_look import LoginLook
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import bytes_of
from jlremote.link.wire.states import LoginShell
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps, run_script
from jlremote.place.host.framing import run_steps
from jlremote.place.host.shell_text import pause
from jlremote.questions import Asker
from jlremote.ssh.config.destination import Destination, SentVariables, resolve
from jlremote.ssh.connect import connect
from jlremote.ssh.connection import Connection
from jlremote.ssh.login.credentials import forget

log = logging.getLogger(__name__)

# A first connection has nothing to end, and its command goes first.
FIRST_SECONDS = 1.0
_SECONDS = 20.0
_SERVER = re.compile(r"[0-9a-f-]+/pid:\[[0-9]+\]/[0-9]+/[0-9]+")

# Prints the sshd process that began the script's session as BOOT/NAMESPACE/PID/START, and ends
# the one before it. No other process has the same, on another host behind the same name neither. An
# sshd farther up may carry a person's terminal, in which another server was started. Its folder in
# /proc is root's, so only a signal tells whose it is: the user's own ends, and root's refuses.
_SCRIPT = """\
place=$(cat /proc/sys/kernel/random/boot_id)/$(readlink /proc/self/ns/pid) || exit
look() {
  pid=$1 parent=0 session=0 found=
  { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return
  name=${stat#*(} name=${name%)*}
  set -- ${stat##*) }
  parent=$2 session=$4
  case $1$name in Z*) ;; ?sshd*) found=$place/$pid/${20};; esac
}
look $$; look "$session"; look "$parent"
[ -n "$found" ] || exit
own=$found last=KNOWN
number=${last%/*} number=${number##*/} turns=0
while [ "$last" != "$own" ]; do
  look "$number"
  [ -n "$found" ] && [ "$found" = "$last" ] || break
  signal=TERM
  [ "$turns" -lt 5 ] || signal=KILL
  [ "$turns" -lt 10 ] && kill -s "$signal" "$number" 2>/dev/null || break
  turns=$((turns + 1)); PAUSE
done
printf '%s\\n' "$own"
""".replace("PAUSE", pause(0.2))


@dataclass(frozen=True)
class ConnectionHost:
    """A `Host` on one connection, for the checks that the link makes by itself."""

    name: str
    connection: Connection

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        def execute(script: str, output: Callable[[str, bytes], None]) -> None:
            try:
                self.connection.execute(bytes_of(script), output, timeout=timeout)
            except TimeoutError as late:
                raise JlrError(f"`{self.name}` did not answer within {timeout:g} s") from late

        return run_steps(steps, limit, execute)


class Dialer:
    """Connects to the host, each time with the present settings and SSH agent.

    Relative paths in the settings begin in `folder`, that of the command which started the link.
    Of the latest connection, `probing` are its `ServerAlive` settings, `notes` a sentence for each
    setting that jlr does not support, and `variables` what its settings send of an environment.
    """

    def __init__(self, files: LinkFiles, folder: Path) -> None:
        self.probing = Probing()
        self.notes: tuple[str, ...] = ()
        self.variables = SentVariables()
        self.host = files.host
        self._files = files
        self._folder = folder
        self._agent_socket = os.environ.get("SSH_AUTH_SOCK")
        self._secrets = Secrets()
        self._elevation = Elevation(self._destination, self._secrets)
        self._login = LoginLook(files.login)

    def hand_over(self, agent_socket: str) -> None:
        """Use the agent of the latest command: the first agent dies with its shell."""
        self._agent_socket = agent_socket

    def dial(self, asker: Asker) -> Connection:
        destination = self._destination()
        self.notes = destination.notes
        self.variables = destination.variables
        wanted = destination.alive_interval, destination.alive_count
        self.probing = Probing(*wanted) if destination.alive_interval > 0 else Probing()
        connection = connect(
            destination,
            asker,
            agent_socket=self._agent_socket,
            secrets=self._secrets,
            sudo=self._elevation,
            head=self._login.head,
        )
        self._login.connected(ConnectionHost(self._files.host, connection))
        return connection

    def login_shell(self, connection: Connection) -> tuple[LoginShell, bool]:
        """Look where a login shell looks; see `LoginLook.look`."""
        return self._login.look(ConnectionHost(self._files.host, connection))

    def elevate(self, connection: Connection, script: str, asker: Asker) -> None:
        """Obtain the password of `sudo`, if a script is going to need it.

        Raise `JlrError` if no password is right, or there is no terminal to ask in.
        """
        self._elevation.prepare(ConnectionHost(self._files.host, connection), script, asker)

    def forget(self) -> tuple[str, ...]:
        """Delete the keychain's entries of the host and its jump hosts; return their names."""
        return forget(self._destination(), self._secrets)

    def _destination(self) -> Destination:
        return resolve(self._files.host, self._files.ssh_config, self._folder)


class HostSide:
    """The sshd process that served a link's last connection, which the next connection ends.

    sshd notices for minutes nothing of a network that fell silent, and keeps what the connection
    carried: Jupyter takes the page for present, writes into its WebSocket, and buffers nothing.
    Once that process has ended, its sockets are closed, and so are those of a relay in a container,
    whose stdin ends with it.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._known = ""

    def renew(self, connection: Connection) -> None:
        """End what served the connections before this one, in a thread of its own."""
        threading.Thread(target=self._renew, args=(connection,), daemon=True).start()

    def _renew(self, connection: Connection) -> None:
        with self._lock:
            if not self._known and connection.wait_closed(FIRST_SECONDS):
                return
            script = _SCRIPT.replace("KNOWN", self._known)
            try:
                done = run_script(ConnectionHost(self._host, connection), script, timeout=_SECONDS)
            except JlrError as error:
                log.info("the sshd of the last connection was not ended: %s", error)
                return
            if _SERVER.fullmatch(own := done.stdout.strip()):
                self._known = own
                log.info("an sshd to end with the next connection: %s", own)
