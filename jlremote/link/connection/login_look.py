"""What the host's login shell has and a command by ssh lacks, at the head of each script.

Startup files put folders on the PATH of login shells only, and `.bashrc` often ends early where no
person types, so `DOCKER_HOST` of a rootless docker is not set for commands by ssh.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from posixpath import basename

from jlremote.errors import JlrError, Unreachable
from jlremote.link.wire.states import LoginShell
from jlremote.place.host.contract import Completed, Host, run_script
from jlremote.place.host.framing import new_marker
from jlremote.text import one_line
from jlremote.untrusted import Refused, absolute_path

SECONDS = 10
_TIMED_OUT = (124, 137)
_REMOTE = re.compile(r"(tcp|ssh)://[\w.@:\[\]%-]+(/[\w.~/-]*)?")

_FOUND = """\
for jlr_one in docker podman apptainer singularity nvidia-smi; do
  command -v "$jlr_one" || :
done"""
# The shell's language does not matter: it only begins `sh`. What stands behind a test for a person
# wants `-i`, and an interactive bash ignores SIGTERM.
_ASK = f"""\
jlr_shell=${{SHELL-}}
case ${{jlr_shell##*/}} in bash|zsh|fish|ksh|mksh|dash|sh) ;; *) jlr_shell=/bin/sh;; esac
printf '%s\\n' "$jlr_shell" "$PATH" "${{DOCKER_HOST-}}"; {_FOUND}
jlr_ask='printf "\\n%s\\n%s\\n%s\\n" MARKER "$PATH" "${{DOCKER_HOST-}}"; {_FOUND}; echo MARKER'
TERM=dumb; export jlr_ask TERM
jlr_limit=; ! command -v timeout >/dev/null || jlr_limit='timeout -s KILL {SECONDS}'
$jlr_limit "$jlr_shell" -ilc 'exec /bin/sh -c "$jlr_ask"' </dev/null 2>/dev/null
"""
# Beyond the shell's own limit, for a host without `timeout`.
_LATE_SECONDS = SECONDS + 5.0


class LoginLook:
    """The answer of the host's login shell, which is asked once for all connections of a link.

    The file `needed` exists while the host needs it, so the next link asks before its first script.
    """

    def __init__(self, needed: Path) -> None:
        self._needed = needed
        self._asking = threading.Lock()
        self._answer: LoginShell | None = None

    def head(self) -> bytes:
        """Return the text at the head of each script, empty until it is known to be needed."""
        answer = self._answer
        return answer.head().encode() if answer is not None else b""

    def look(self, host: Host) -> tuple[LoginShell, bool]:
        """Return what the login shell has, and whether later scripts find more by this call.

        Raise `Unreachable` if the connection broke meanwhile.
        """
        with self._asking:
            if self._answer is not None:
                return self._answer, False
            marker = new_marker()
            try:
                asked = run_script(host, question(marker), timeout=_LATE_SECONDS)
                answer = read(asked, marker)
            except Unreachable:
                raise
            except JlrError as error:
                said = f"its login shell cannot be asked: {error.message}"
                answer = LoginShell("", trouble=said)
            self._answer = answer
            with suppress(OSError):  # the next command that finds no engine looks again
                if answer.helps:
                    self._needed.touch(mode=0o600)
                elif not answer.trouble:
                    self._needed.unlink(missing_ok=True)
            return answer, answer.helps

    def connected(self, host: Host) -> None:
        """Ask the login shell if the last link has found that the host needs that."""
        if self._answer is None and self._needed.exists():
            with suppress(Unreachable):
                self.look(host)


def question(marker: str) -> str:
    """Return the script that asks the user's login shell once, within `SECONDS`."""
    return _ASK.replace("MARKER", marker)


def read(done: Completed, marker: str) -> LoginShell:
    """Return the answer; what the shell's startup files print around it is noise."""
    before, begun, rest = done.stdout.partition(f"\n{marker}\n")
    answer, ended, _ = rest.partition(f"\n{marker}\n")
    shell, path, engine, *programs = [*before.split("\n"), "", ""]
    own = f"its login shell `{one_line(shell)}`"
    if not begun or not ended:
        late = done.status in _TIMED_OUT
        said = f"did not answer within {SECONDS} s" if late else "gave no answer"
        return LoginShell(shell, trouble=f"{own} {said}")
    their_path, their_engine, *they_find = answer.split("\n")
    named = "" if engine else their_engine
    names = [*map(basename, programs)]
    try:
        return LoginShell(
            shell,
            path=_folders(their_path.split(":"), path.split(":")),
            docker_host=named and _docker_host(named),
            finds=tuple(each for each in _folders(they_find, ()) if basename(each) not in names),
        )
    except Refused as refused:
        return LoginShell(shell, trouble=f"{own} has a DOCKER_HOST that is refused: {refused}")


def _folders(theirs: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return their absolute paths which are not known; others mean another folder elsewhere."""
    new = [each for each in theirs if each.startswith("/") and each not in known]
    return tuple(dict.fromkeys(map(absolute_path, new)))


def _docker_host(text: str) -> str:
    """Return the address of an engine, in a form that docker reads; raise `Refused` for another."""
    if text.startswith("unix://"):
        return f"unix://{absolute_path(text.removeprefix('unix://'))}"
    if not _REMOTE.fullmatch(text):
        raise Refused(f"`{one_line(text)}` is no address of an engine")
    return text
