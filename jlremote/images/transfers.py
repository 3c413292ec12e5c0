"""Run a pull, push or build so that it outlasts its connection, and read its progress."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from jlremote.errors import LinkLost
from jlremote.hosts.context import Context
from jlremote.link.client.link import Link
from jlremote.place.host.shell_text import command_line
from jlremote.place.host.sudo import endable
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.text import printable, size_in_words
from jlremote.untrusted import number

# Sizes as docker's units package writes them: 36.45kB/2.001MB. `1A` and the like move the cursor.
_SIZE = r"(\d{1,15}(?:\.\d{1,15})?)\s?([kMGTP]?)B"
_LAYER = re.compile(rf"^([0-9a-f]{{12}}): ([A-Z][A-Za-z ]*?)(?:\s+{_SIZE}/{_SIZE}.*)?\s*$")
# Podman names only the layers that it begins and those that it has.
_BLOB = re.compile(r"^Copying blob (?:sha256:)?([0-9a-f]{12})[0-9a-f]*( done| skipped.*)?\s*$")
_PODMAN_TELLS = re.compile(
    r"^(?:Trying to pull |Getting image source signatures|Copying config |Writing manifest to |"
    r"Storing signatures|time=|[0-9a-f]{64}$)"
)
# Apptainer prints its steps, and the bytes of what it fetches.
_STEP = re.compile(r"INFO:\s+(.*)")
_BYTES = re.compile(r"([\d.]+ ?[kKMGT]?i?B) / ([\d.]+ ?[kKMGT]?i?B)")
_LONGEST_LINE = 1000
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_DONE = ("Pull complete", "Already exists", "Pushed", "Layer already exists", "Mounted from")
_FETCHED = ("Verifying Checksum", "Download complete", "Extracting", *_DONE)
_MOVING = ("Downloading", "Pushing")


def watched(engine: Engine, argv: tuple[str, ...]) -> str:
    """Return a script that runs the engine on a terminal, where docker shows bytes too.

    Without `script` on the host only the bytes are missing. `SHELL` is set because `script` runs
    the command with the user's shell, where our quoting may not hold.
    """
    plain = command_line(argv)
    if not engine.kind.shows_bytes:
        return endable(argv)
    on_terminal = command_line(("script", "-qec", plain, "/dev/null"))
    return (
        "if script --version 2>/dev/null | grep -q util-linux; "
        f"then SHELL=/bin/sh {on_terminal} </dev/null; else {plain}; fi"
    )


@dataclass
class Transfer:
    """The progress of a pull or push; `complaint` has the last lines that are about no layer."""

    complaint: list[str] = field(default_factory=list)
    _layers: dict[str, int] = field(default_factory=dict)  # the bytes of each that have moved
    _done: set[str] = field(default_factory=set)  # the layers that are complete
    _now: str = ""
    _begun: str = ""

    def take(self, text: str) -> None:
        *whole, begun = re.split(r"[\r\n]", self._begun + text)
        self._begun = begun[-_LONGEST_LINE:]
        for line in whole:
            self._line(printable(line[-_LONGEST_LINE:]).strip())

    def finish(self) -> None:
        """Take the last line, even if no line break ends it."""
        self.take("\n")

    def in_words(self) -> str:
        """Return `7 of 24 layers, 1.2 GB`, or Apptainer's step or bytes; empty before the first."""
        if not self._layers:
            return self._now
        text = f"{len(self._done)} of {len(self._layers)} layers"
        moved = sum(self._layers.values())
        return f"{text}, {size_in_words(moved)}" if moved else text

    def _line(self, line: str) -> None:
        shown = _LAYER.match(line)
        if blob := _BLOB.match(line):
            self._note(blob[1], done=blob[2] is not None)
        elif not shown and line and not _PODMAN_TELLS.match(line):
            self.complaint = [*self.complaint, line][-20:]
        if step := _STEP.search(line):
            self._now = step[1].rstrip(".")
        elif moved := _BYTES.search(line):
            self._now = f"{moved[1]} of {moved[2]}"
        if not shown:
            return
        self._note(shown[1], done=shown[2].startswith(_DONE))
        if shown[3] and shown[2] in (*_MOVING, *_FETCHED):
            amount, unit = shown.group(3, 4) if shown[2] in _MOVING else shown.group(5, 6)
            self._layers[shown[1]] = round(number(amount) * _UNITS[unit])

    def _note(self, layer: str, *, done: bool) -> None:
        self._layers.setdefault(layer, 0)
        self._done = self._done | {layer} if done else self._done - {layer}


def follow(
    host: Link, script: str, given: Iterable[bytes], transfer: Transfer, context: Context
) -> int:
    """Follow a transfer to its end, joined again after a loss, and return its exit status."""
    while True:
        try:
            with host.stream(script, given) as output:
                for text in output.text():
                    transfer.take(text)
                    context.progress.advance(transfer.in_words())
        except LinkLost:
            transfer.finish()
            if not transfer.in_words():
                raise
            context.progress.note("the connection broke; the transfer goes on there; reconnecting")
        else:
            transfer.finish()
            return 1 if output.status is None else output.status


def one_at_a_time(name: str, command: str) -> str:
    """Return a script that runs `command` once an earlier one of this name and user has ended.

    That one may have outlasted its connection. Hosts without `flock` do not wait.
    """
    return f"""\
lock=${{XDG_RUNTIME_DIR:-$HOME}}/.jlr-{name}
if command -v flock >/dev/null && (: >>"$lock") 2>/dev/null; then exec 9>>"$lock"; flock 9; fi
{command}
status=$?
rm -f "$lock"
(exit "$status")"""


def surviving_disconnect(command: str) -> str:
    """Return a script whose `command` goes on when the connection breaks.

    Then SIGPIPE ends the first `cat`, and the second reads on. A signal from sshd, as after
    Ctrl-C, still ends the command.
    """
    return f"""\
exec 4>&1
status=$({{ {{ {command}
echo $? >&3; }} 2>&1 | {{ cat; cat >/dev/null; }} >&4; }} 3>&1)
exit "$status"
"""
