"""The host's side of a lost connection, which the next connection ends.

sshd notices for minutes nothing of a network that fell silent, and keeps what the connection
carried: Jupyter takes the page for present, writes into its WebSocket, and buffers nothing. Once
that sshd process has ended, its sockets are closed, and so are those of a relay in a container,
whose stdin ends with it.
"""

from __future__ import annotations

import logging
import re
import threading

from jlremote.errors import JlrError
from jlremote.link.connection.dialer import ConnectionHost
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import pause
from jlremote.ssh.connection import Connection

log = logging.getLogger(__name__)

# A first connection has nothing to end, and its command goes first.
FIRST_SECONDS = 1.0
_SECONDS = 20.0
_SERVER = re.compile(r"[0-9a-f-]+/pid:\[[0-9]+\]/[0-9]+/[0-9]+")

# Prints the sshd process that began the script's session as BOOT/NAMESPACE/PID/START, and ends
# those before it. No other process has the same, on another host behind the same name neither. An
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
own=$found
for one in KNOWN; do
  [ "$one" != "$own" ] || continue
  number=${one%/*} number=${number##*/} turns=0
  while look "$number"; [ "$found" = "$one" ]; do
    signal=TERM
    [ "$turns" -lt 5 ] || signal=KILL
    [ "$turns" -lt 10 ] && kill -s "$signal" "$number" 2>/dev/null || break
    turns=$((turns + 1)); PAUSE
  done
done
printf '%s\\n' "$own"
""".replace("PAUSE", pause(0.2))


class HostSide:
    """The sshd processes that served a link's connections."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._known: tuple[str, ...] = ()

    def renew(self, connection: Connection) -> None:
        """End what served the connections before this one, in a thread of its own."""
        threading.Thread(target=self._renew, args=(connection,), daemon=True).start()

    def _renew(self, connection: Connection) -> None:
        with self._lock:
            if not self._known and connection.wait_closed(FIRST_SECONDS):
                return
            script = _SCRIPT.replace("KNOWN", " ".join(self._known))
            try:
                done = run_script(ConnectionHost(self._host, connection), script, timeout=_SECONDS)
            except JlrError as error:
                log.info("the sshd of the last connection was not ended: %s", error)
                return
            if _SERVER.fullmatch(done.stdout.strip()):
                self._known = (done.stdout.strip(),)
                log.info("an sshd to end with the next connection: %s", self._known[0])
