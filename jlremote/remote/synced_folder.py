"""The far end of `jlr sync`: makes a folder like the laptop's, and deletes only what it brought.

It reads the list of what is in the laptop's folder, answers with the numbers of the files that it
wants, and reads those and the names of those that changed meanwhile, each with its length before.
Files get their names once all have come. The list of what it brought is in `OWN`, with the state in
which each file was left: what has another state since was changed here, and stays.
"""

import filecmp
import json
import os
import shutil
import signal
import stat
import sys
import zlib
from contextlib import suppress
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Set

OWN = ".jlr-sync"  # the private folder in the destination
BUSY = 75  # sysexits.h: EX_TEMPFAIL; another `jlr sync` has the folder
REFUSED = 76  # the destination is `/` or the home folder
EMPTY = 78  # the laptop's folder is empty, and all that was brought would go
SIZE_DIGITS = 15  # of a length
_BUSY_SECONDS = 10
_PIECE = 1 << 20

# `["d"]` of a folder, `["l", TEXT]` of a link, `["f", SIZE, NANOSECONDS, IS_EXECUTABLE]` of a file.
State = List[Any]
# The state on the laptop, that here, and the one before that, which a cut may have left.
Known = List[Optional[State]]
Brought = Dict[str, Known]


def state_of(path: bytes) -> Optional[State]:
    """Return the state of a path, `None` if nothing is there."""
    try:
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            return ["l", os.readlink(path).decode("utf-8", "surrogateescape")]
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(facts.st_mode):
        return ["d"]
    if stat.S_ISREG(facts.st_mode):
        return ["f", facts.st_size, facts.st_mtime_ns, bool(facts.st_mode & stat.S_IXUSR)]
    return ["?"]


def is_same(one: State, other: State) -> bool:
    """Return whether two states are of the same content; `tar` keeps whole seconds only."""
    if one[0] != "f" or other[0] != "f":
        return one == other
    second = 10**9
    seconds = one[2] // second == other[2] // second and 0 in (one[2] % second, other[2] % second)
    return one[1] == other[1] and one[3] == other[3] and (one[2] == other[2] or seconds)


class Plan:
    """What is to be done, by name."""

    def __init__(self, overwrite: bool) -> None:
        self.overwrite = overwrite
        self.brought: Brought = {}  # what stays in the list as it is
        self.want: List[str] = []
        self.found: Dict[str, Optional[State]] = {}  # the states here that were judged
        self.compared: Set[str] = set()  # wanted files that replace only equal ones
        self.gone: List[str] = []  # to delete
        self.kept: List[str] = []  # what changed here only
        self.conflicts: List[str] = []  # what differs, and was not brought as it is here
        self._blocked: Set[str] = set()  # folders there that are something else here

    def is_blocked(self, name: str) -> bool:
        """Return whether a name is below something that stays and is no folder."""
        if name.rpartition("/")[0] in self._blocked:
            self._blocked.add(name)
        return name in self._blocked

    def keep(self, name: str, known: Optional[Known], state: State) -> None:
        """Leave a name as it is here."""
        if known is not None:
            self.brought[name] = known
        (self.kept if known is not None and known[0] == state else self.conflicts).append(name)
        self._blocked.add(name)

    def judge(self, name: str, state: State, known: Optional[Known], here: Optional[State]) -> None:
        """Decide on a name whose state on the laptop, before and here is given."""
        self.found[name] = here
        is_new = known is None or known[0] != state
        if here is not None and is_same(here, state):
            self.brought[name] = [state, here, None]
        elif here is not None and known is not None and not is_new and here == known[1]:
            self.brought[name] = known
        elif here is None or self.overwrite or (known is not None and here in known[1:]):
            self.want.append(name)
        elif here[0] == state[0] == "f" and is_new:
            self.want.append(name)
            self.compared.add(name)
        else:
            self.keep(name, known, state)


def decide(
    there: Dict[str, State],
    brought: Brought,
    look: Callable[[str], Optional[State]],
    overwrite: bool,
) -> Plan:
    """Compare what is `there`, on the laptop, with the list and with what `look` finds here."""
    plan = Plan(overwrite)
    for name, state in there.items():
        if not plan.is_blocked(name):
            plan.judge(name, state, brought.get(name), look(name))
        elif name in brought:
            plan.brought[name] = brought[name]
    for name in sorted(brought.keys() - there.keys()):
        known = brought[name]
        if plan.is_blocked(name):
            plan.brought[name] = known
            continue
        plan.found[name] = found = look(name)
        if found is not None and found in known[1:]:
            plan.gone.append(name)
        elif found is not None:
            plan.keep(name, None, found)
            plan.kept.append(plan.conflicts.pop())
    return plan


class _Folder:
    """The destination, whose lock this process has, and what is to be in it.

    The wanted files wait in the private folder for their names.
    """

    def __init__(self, top: str, source: str, there: Dict[str, State]) -> None:
        self.top, self.source, self.there = os.fsencode(top), source, there
        self.own = os.path.join(self.top, OWN.encode())
        self.new = os.path.join(self.own, b"new")
        self.brought: Brought = {}
        self.by = ""  # the laptop's folder that was brought before
        self.plan = Plan(False)
        self.waiting: Dict[str, bytes] = {}
        self.sent: List[str] = []

    def path(self, name: str) -> bytes:
        return os.path.join(self.top, name.encode("utf-8", "surrogateescape"))

    def look(self, name: str) -> Optional[State]:
        return state_of(self.path(name))

    def lock(self) -> None:
        """Make the private folder, and wait for its lock, which this process has to its end."""
        import fcntl  # which Windows lacks, where the laptop's half may run

        os.makedirs(self.top, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(self.own, 0o700)
            with open(os.path.join(self.own, b".gitignore"), "w") as rules:
                rules.write("*\n")
        lock = os.open(os.path.join(self.own, b"lock"), os.O_RDWR | os.O_CREAT, 0o600)
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(BUSY))
        signal.alarm(_BUSY_SECONDS)
        with suppress(OSError):  # some file systems have no locks, as Lustre
            fcntl.flock(lock, fcntl.LOCK_EX)
        signal.alarm(0)

    def load(self) -> None:
        """Read the list; without one, or with that of another folder, nothing was brought."""
        try:
            with open(os.path.join(self.own, b"list"), encoding="ascii") as file:
                text = json.load(file)
            self.by = str(text["source"])
            if self.by == self.source:
                self.brought = dict(text["brought"])
        except (OSError, ValueError, KeyError, TypeError):
            self.brought = {}

    def save(self, brought: Brought) -> None:
        """Write the list whole, if it has changed.

        It does not wait for the disk: a list that a crash of the host has broken is taken for none.
        """
        if brought == self.brought and self.by == self.source:
            return
        part = os.path.join(self.own, b"list.part")
        with open(part, "w", encoding="ascii") as file:
            file.write(json.dumps({"source": self.source, "brought": brought}))
        os.replace(part, os.path.join(self.own, b"list"))
        self.brought, self.by = brought, self.source

    def receive(self, wanted: List[str], given: BinaryIO) -> None:
        """Read these files, and which of them changed meanwhile."""
        for name in wanted:
            self.waiting[name] = self._write(name, given)
        for name in json.loads(b"".join(_pieces(given)).decode("ascii")):
            del self.waiting[name]

    def _write(self, name: str, given: BinaryIO) -> bytes:
        path = os.path.join(self.new, b"%d" % len(self.waiting))
        _, _, nanoseconds, executable = self.there[name]
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if executable else 0o666)
        try:
            for piece in _pieces(given):
                while piece:
                    piece = piece[os.write(file, piece) :]
        finally:
            os.close(file)
        os.utime(path, ns=(nanoseconds, nanoseconds))
        return path

    def settle(self) -> None:
        """Give all their names, and delete what is gone.

        The list has the new states before, beside the old ones: a cut leaves none unknown.
        """
        before, later = self.brought, self._later()
        brought = dict(self.plan.brought)
        brought.update({name: before[name] for name in self.plan.want if name in before})
        gone = {name: before[name] for name in self.plan.gone}
        self.save({**brought, **gone, **later})
        self._delete([name for name in gone if self._is_in_the_way(name)])
        for name, known in later.items():
            if self._place(name):
                self.sent.append(name)
                brought[name] = known
            else:
                self.plan.conflicts.append(name)
        self._delete(self.plan.gone)
        self.save(brought)

    def _later(self) -> Brought:
        later: Brought = {}
        for name in self.plan.want:
            state, known = self.there[name], self.brought.get(name, [None, None])
            if name in self.waiting or state[0] != "f":  # else it changed while it was read
                new = state_of(self.waiting[name]) if name in self.waiting else state
                later[name] = [state, new, known[1]]
        return later

    def _is_in_the_way(self, name: str) -> bool:
        above = name.rpartition("/")[0]
        while above and self.there.get(above, ["d"]) == ["d"]:
            above = above.rpartition("/")[0]
        return bool(above)

    def _delete(self, names: List[str]) -> None:
        for name in sorted(names, reverse=True):  # what is in a folder comes before it
            path, found = self.path(name), self.look(name)
            if found == ["d"]:
                with suppress(OSError):  # there is more in it
                    os.rmdir(path)
            elif found is not None and found == self.plan.found[name]:
                os.unlink(path)

    def _place(self, name: str) -> bool:
        path, state, found = self.path(name), self.there[name], self.look(name)
        if found not in (None, self.plan.found[name]):
            return False  # it was changed a moment ago
        new = self.waiting.get(name, os.path.join(self.new, b"link"))
        if name in self.plan.compared and not filecmp.cmp(path, new, shallow=False):
            return False
        if found == ["d"]:
            try:
                os.rmdir(path)
            except OSError:  # it is not empty
                return False
        if state == ["d"]:
            if found is not None:
                os.unlink(path)
            os.mkdir(path)
            return True
        if state[0] == "l":
            os.symlink(state[1].encode("utf-8", "surrogateescape"), new)
        os.replace(new, path)
        return True


def _destination(into: Optional[str], name: str) -> str:
    home, path = (os.path.realpath(os.path.expanduser(each)) for each in ("~", into or "."))
    if into is None and path in ("/", home):
        path = os.path.join(path, name)
    if path in ("/", home):
        sys.exit(REFUSED)
    return path


def _pieces(given: BinaryIO) -> Iterator[bytes]:
    """Yield what comes next, without its length."""
    left = int(given.read(SIZE_DIGITS) or sys.exit("it ends too early"))
    while left:
        piece = given.read(min(left, _PIECE)) or sys.exit("it ends too early")
        yield piece
        left -= len(piece)


def _answer(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def _run(given: BinaryIO) -> None:
    request = json.loads(zlib.decompress(b"".join(_pieces(given))).decode("ascii"))
    top = _destination(request["into"], request["name"])
    there = dict(request["entries"])
    folder = _Folder(top, request["source"], there)
    if not request["dry"]:
        folder.lock()
    folder.load()
    before = folder.by if folder.by != folder.source else ""
    plan = folder.plan = decide(there, folder.brought, folder.look, request["overwrite"])
    if plan.gone and not there:
        sys.exit(EMPTY)
    if request["dry"]:
        folder.sent = plan.want
    else:
        _act(folder, given)
    sent = [name for name in folder.sent if there[name] != ["d"]]
    ends = {"deleted": plan.gone, "kept": plan.kept, "conflicts": plan.conflicts}
    _answer(into=top, sent=sent, before=before, **ends)


def _act(folder: _Folder, given: BinaryIO) -> None:
    numbers = {name: number for number, name in enumerate(folder.there)}
    files = [name for name in folder.plan.want if folder.there[name][0] == "f"]
    shutil.rmtree(folder.new, ignore_errors=True)  # of a sync that was cut
    try:
        if folder.plan.want:
            os.mkdir(folder.new, 0o700)
        if files:
            _answer(want=[numbers[name] for name in files])
            folder.receive(files, given)
        folder.settle()
    finally:
        shutil.rmtree(folder.new, ignore_errors=True)


def main(_argv: List[str]) -> None:
    """Take one folder."""
    try:
        with open(0, "rb", _PIECE) as given:  # `sys.stdin` reads in small pieces
            _run(given)
    except OSError as failure:
        where = os.fsdecode(failure.filename or "")
        sys.exit(f"{where}: {failure.strerror}" if where else str(failure))
    except Exception as failure:  # noqa: BLE001 - of an archive or a list that was cut, mostly
        sys.exit(f"{type(failure).__name__}: {failure}")
