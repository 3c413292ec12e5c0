"""The processes of a session's container or job, and those that a stop must not end unasked.

One script prints the processes; the judgement is a pure function. It names what works: programs in
JupyterLab's terminals, shells and commands that were begun by the engine's `exec` (those of `jlr
shell` and `jlr run --in` too), and programs of the main process. What only waits does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from jlremote.jupyter import recorder
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.scripts import LAUNCH_MARK
from jlremote.place.host.contract import PRINT_FIELD, PRINT_RECORD, TAKE_OUT, records
from jlremote.place.host.process_mark import ADOPTER, CARRIER
from jlremote.remote import sending
from jlremote.text import one_line
from jlremote.untrusted import whole_number

# The script; OWNS is shell text that says whether `$process` is one of the session.
PROCESSES = f"""\
own=; read -r own </proc/self/cgroup
plain() {{ {TAKE_OUT} <"$1"; }}
printf 'self{PRINT_FIELD}%s{PRINT_RECORD}' $$
for process in /proc/[0-9]*; do
  OWNS || continue
  printf 'process{PRINT_FIELD}'; plain "$process/stat"
  printf '{PRINT_FIELD}'; plain "$process/cmdline"; printf '{PRINT_RECORD}'
done 2>/dev/null
:
"""
# The titles of processes that only stand above a command: of a user's ssh, and of an image.
_ABOVE = re.compile(r"sshd(-session)?: \S+@\S+|(Apptainer|Singularity) runtime parent")

# What runc is for an instant, before it becomes a command of `exec`, also one of jlr's own.
_ENTERS = {("runc", "init"), ("/proc/self/exe", "init")}

_SHELLS = {"sh", "bash", "dash", "zsh", "fish", "ash", "ksh", "tcsh", "csh"}
_INITS = {"tini", "docker-init", "init", "catatonit", "podman-init", "dumb-init", "conmon"}
# Apptainer's, which give an image's files as long as it runs.
_FILES = {"squashfuse", "squashfuse_ll", "fuse-overlayfs", "fuse2fs"}
_LONG_SLEEP = re.compile(r"inf(inity)?|\d{5,}s?|\d+d")
# In words of what jlr runs there for itself.
OURS = (sending.MARK, recorder.PROGRAM_FILE)
_SHOWN = 60


@dataclass(frozen=True)
class Process:
    """A process in the container."""

    pid: int
    parent: int
    session: int  # the id of its process session
    terminal: bool  # whether it has a controlling terminal
    words: tuple[str, ...]  # its arguments
    began: int = 0  # in ticks since the boot

    @property
    def program(self) -> str:
        return self.words[0].rpartition("/")[2].lstrip("-") if self.words else ""

    @property
    def adopts(self) -> bool:
        """Whether the process only waits for a job's command, and adopts its orphans."""
        return self.words[4:5] == (ADOPTER,)

    @property
    def shown(self) -> str:
        """The arguments on one short line, for a message."""
        text = one_line(" ".join(self.words))
        return f"`{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}`"


@dataclass(frozen=True)
class Activity:
    """The processes of a container, as seen once."""

    processes: tuple[Process, ...] = ()
    own: int = 0  # the process that looked

    def terminals(self, server: Server) -> Iterator[str]:
        """Name the programs that run in the terminals of a Jupyter server."""
        for shell in self._children.get(server.pid, ()):
            if shell.terminal and shell.session == shell.pid:
                for each in self.processes:
                    if each.session == shell.pid != each.pid:
                        yield f"{each.shown} in a terminal of JupyterLab"

    def is_main(self, server: Server) -> bool:
        """Check that a server is the container's main process, with whose end all else ends."""
        process, first = self._by_pid.get(server.pid), self._by_pid.get(1)
        by_init = process and first and process.parent == 1 and first.program in _INITS
        return server.pid == 1 or bool(by_init)

    def others(self, servers: Iterable[Server], own_text: str) -> Iterator[str]:
        """Name what runs beside these servers; `own_text` is in all scripts of jlr's own."""
        aside = more = {self.own, *(server.pid for server in servers)}
        while more:
            more = {each.pid for each in self.processes if each.parent in more} - aside
            aside = aside | more
        for root in self.processes:
            above = self._by_pid.get(root.parent)
            is_root = not root.adopts and (above is None or above.adopts)
            if root.pid in aside or not is_root:
                continue
            words = " ".join(root.words)
            if root.pid != 1 and any(ours in words for ours in (own_text, *OURS)):
                continue
            if root.terminal and root.program in _SHELLS and root.pid != 1:
                within = (each for each in self.processes if each.session == root.session)
                below = (each for each in within if each.pid != root.pid and not each.adopts)
                runs = next(below, root)
                yield "an open shell" if runs is root else f"an open shell with {runs.shown}"
            else:
                kind = "job" if above is not None and above.adopts else "program"
                yield from (f"the {kind} {each.shown}" for each in self._working(root, aside))

    def _working(self, root: Process, aside: set[int]) -> Iterator[Process]:
        if root.pid in aside:
            return
        if root.program not in _SHELLS | _INITS | _FILES:
            if not _waits(root):
                yield root
            return
        below = self._children.get(root.pid, ())
        works = [each for child in below for each in self._working(child, aside)]
        ours = CARRIER in root.words or any(LAUNCH_MARK in word for word in root.words)
        has_script = root.program in _SHELLS and len(root.words) > 1 and not ours
        # A script between two turns of its loop is known by its own name.
        pauses = any(each.program == "sleep" for each in works)
        yield from [root] if has_script and (pauses or not below) else works

    @cached_property
    def _by_pid(self) -> dict[int, Process]:
        return {each.pid: each for each in self.processes}

    @cached_property
    def _children(self) -> dict[int, list[Process]]:
        children: dict[int, list[Process]] = {}
        for each in self.processes:
            children.setdefault(each.parent, []).append(each)
        return children


def _waits(process: Process) -> bool:
    if process.program == "sleep":
        return all(_LONG_SLEEP.fullmatch(word) for word in process.words[1:])
    if process.program in ("tail", "cat"):
        return process.words[-1] == "/dev/null" or len(process.words) == 1
    return process.program == "pause"


def read(printed: str) -> Activity:
    """Read the script's output, and skip what is no process."""
    own, processes = 0, []
    for fields in records(printed):
        with suppress(ValueError, IndexError):
            kind, *rest = fields
            if kind.strip() == "self":
                own = whole_number(rest[0])
            elif process := _process(rest[0], rest[1]):
                processes.append(process)
    return Activity(tuple(processes), own)


def _process(stat: str, words: str) -> Process | None:
    """Return the process of a line of `/proc/PID/stat`; `None` for a dying one or the engine's."""
    state, parent, _group, session, terminal, *more = stat.rpartition(")")[2].split()
    argv = tuple(word for word in words.split("\0") if word)
    if state in "ZX" or not argv or argv in _ENTERS or _ABOVE.match(argv[0]):
        return None
    pid, above, group = map(whole_number, (stat.split()[0], parent, session))
    return Process(pid, above, group, terminal != "0", argv, whole_number((more[14:] or "0")[0]))
