"""`jlr cp` from a container whose programs are hostile: nothing that was not asked for is written.

Its `sh` answers with bytes that the test has chosen: a list of what is there, and archives.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jlremote.copies.names import RemotePath
from jlremote.errors import JlrError
from tests.copies.parts import Answering, fetch
from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.lab.programs import Result

SHELL = """\
#!/bin/sh
case "$*" in *found_at*'exit "$status"'*) exec cat /evil/stream ;; esac
exec /bin/sh "$@"
"""
Kind = bytes
FILE, FOLDER, LINK, HARD, FIFO, DEVICE = (
    *(tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE),
    *(tarfile.FIFOTYPE, tarfile.CHRTYPE),
)


def member(
    name: str, kind: Kind = FILE, to: str = "", data: bytes = b"evil", **facts: int
) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, to, 0o755 if kind == FOLDER else 0o644
    info.size = len(data) if kind == FILE else 0
    for fact, value in facts.items():
        setattr(info, fact, value)
    padding = bytes(-len(data) % 512)
    head = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    return head + (data + padding if kind == FILE else b"")


def archive(*members: bytes) -> bytes:
    return b"".join(members) + bytes(1024)


def folder(*members: bytes) -> bytes:
    """Return what comes for `-r sec1:runs`."""
    return b"d 0 1 runs\0\0" + archive(member("./", FOLDER), *members)


@dataclass
class Sandbox:
    """A laptop's folder with things to lose, and a session that is hostile."""

    laptop: Laptop
    container: Container
    folder: Path

    def answer(self, stream: bytes) -> None:
        path = self.folder.parent / "stream"
        path.write_bytes(stream)
        self.container.engine.docker("cp", str(path), f"{self.container.name}:/evil/stream")

    def cp(self, *words: str) -> Result:
        """Copy into the folder, as a person does who is in it."""
        return self.laptop.jlr("cp", *words, str(self.folder))

    def files(self) -> dict[str, str]:
        return files_below(self.folder)


PRECIOUS = {".ssh/authorized_keys": "mine", ".bash_profile": "mine"}


def make_precious(folder: Path) -> dict[str, str]:
    """Make a home with things to lose; return all files beside it, too."""
    for name, text in PRECIOUS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return files_below(folder.parent)


def files_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def install(container: Container, program: str, text: str) -> None:
    """Put a program in front of the container's own."""
    put = 'mkdir -p /evil; printf %s "$2" >/evil/new; chmod +x /evil/new; mv /evil/new "$1"'
    container.execute("sh", "-c", put, "sh", f"/usr/local/sbin/{program}", text)


@pytest.fixture
def sandbox(owner: Laptop, inside: Container, tmp_path: Path) -> Iterator[Sandbox]:
    install(inside, "sh", SHELL)
    here = tmp_path / "here"
    make_precious(here)
    yield Sandbox(owner, inside, here)
    inside.execute("rm", "-f", "/usr/local/sbin/sh")
    assert not list(here.parent.rglob("*.part"))
    assert sorted(path.name for path in here.parent.iterdir() if path.name != "stream") == ["here"]


ONE = archive(member("evil/.bash_profile"))
NOTES, RUNS = "x:/root/notes.txt", ("-r", "x:runs")
TWO = archive(member("notes.txt"), member(".bash_profile"))
LONGER = member("n", size=40, data=b"x" * 4000) + bytes(1024)
EMPTY, SUB = archive(member("./", FOLDER)), member("./a", FOLDER)
NOT_ASKED = {
    "an absolute name": ((NOTES,), b"f 0 0 /evil/.bash_profile\0\0" + ONE),
    "a hidden name": ((NOTES,), b"f 0 0 /root/.bash_profile\0\0" + ONE),
    "a parent": ((NOTES,), b"f 0 0 /root/..\0\0" + ONE),
    "a second file": ((NOTES,), b"f 0 0 /root/notes.txt\0\0" + TWO),
    "a second archive": ((NOTES,), b"f 0 0 /root/notes.txt\0\0" + ONE + ONE),
    "the file twice": (("x:n",), b"f 0 0 n\0f 0 0 n\0\0" + ONE + ONE),
    "a link as the file": (("x:n",), b"f 0 0 n\0\0" + archive(member("n", LINK, "/etc/passwd"))),
    "a file longer than told": (("x:n",), b"f 0 0 n\0\0" + LONGER),
    "a file shorter than told": (("x:n",), b"f 0 0 n\0\0" + member("n", size=4000)),
    "a number of no source": (("x:n",), b"f 1 0 n\0\0" + ONE),
    "a number that is none": (("x:n",), b"f " + b"9" * 5000 + b" 0 n\0\0" + ONE),
    "no list": (("x:n",), ONE),
    "a list that never ends": (("x:n",), b"f 0 0 " + b"n" * 200_000),
    "nothing": (("x:n",), b""),
    "what the pattern does not match": (("x:*.txt",), b"f 0 0 a.txt\0f 0 0 .x.txt\0\0" + ONE + ONE),
    "a folder for a part of the pattern": (("x:r*/*.txt",), b"f 0 0 .ssh/a.txt\0\0" + ONE),
    "a deeper name than the pattern's": (("x:*",), b"f 0 0 .ssh/keys\0\0" + ONE),
    "a parent for a pattern": (("-r", "x:*/*"), b"d 0 0 a/..\0\0" + EMPTY),
    "a slash for a pattern": (("-r", "x:*"), b"d 0 0 /\0\0" + EMPTY),
    "another folder": (RUNS, b"d 0 1 /evil/.ssh\0\0" + EMPTY),
    "a folder without -r": (("x:runs",), folder(member("./a"))),
    "what is no archive": (RUNS, b"d 0 1 runs\0\0" + b"evil" * 4096),
}
IN_A_FOLDER = {
    "an absolute member": (member("/tmp/evil"),),
    "a member of the parent": (member("./../.bash_profile"),),
    "a member through a folder": (SUB, member("./a/../../.bash_profile")),
    "an empty part": (SUB, member("./a//b")),
    "a link and a file through it": (member("./l", LINK, "."), member("./l/x")),
    "a link and the parent through it": (member("./l", LINK, "."), member("./l/../.bash_profile")),
    "a link into the folder": (SUB, member("./l", LINK, "a"), member("./l/x")),
    "a link and a folder of one name": (member("./l", LINK, "a"), member("./l", FOLDER)),
    "a file twice": (member("./a"), member("./a")),
    "another name of a file outside": (member("./a", HARD, "../.bash_profile"),),
    "another name of a link": (member("./l", LINK, "x"), member("./a", HARD, "l")),
    "a nest of folders": (member("./" + "a/" * 300, FOLDER),),
    "a null byte": (member("x", b"x", data=b"")[:124] + b"00000000024\0" + bytes(1),),
}
NOT_ASKED |= {what: (RUNS, folder(*members)) for what, members in IN_A_FOLDER.items()}


@pytest.mark.parametrize("what", NOT_ASKED)
def test_what_was_not_asked_for_is_refused(tmp_path: Path, what: str) -> None:
    *options, source = NOT_ASKED[what][0]
    path = RemotePath("place", source.removeprefix("x:"))
    before = make_precious(tmp_path / "here")
    with pytest.raises(JlrError):
        fetch(Answering(NOT_ASKED[what][1]), path, tmp_path / "here", recursive="-r" in options)
    assert files_below(tmp_path) == before


def test_a_file_gets_the_name_that_was_typed(sandbox: Sandbox) -> None:
    source = f"{sandbox.container.name}:/root/notes.txt"
    sandbox.answer(b"f 0 0 /root/notes.txt\0\0" + ONE)
    done = sandbox.cp(source)
    assert done.status == 0, done
    assert sandbox.files() == PRECIOUS | {"notes.txt": "evil"}
    sandbox.answer(b"f 0 0 /evil/.bash_profile\0\0" + ONE)
    refused = sandbox.cp(source)
    assert (refused.status, "refused what the host sent" in refused.stderr) == (1, True), refused
    assert sandbox.files() == PRECIOUS | {"notes.txt": "evil"}


def test_modes_are_stripped_and_what_is_no_file_is_left_out(sandbox: Sandbox) -> None:
    sandbox.answer(
        folder(
            member("./set", mode=0o6777),
            member("./below", FOLDER, mode=0o3777),
            member("./pipe", FIFO),
            member("./device", DEVICE, devmajor=1, devminor=5),
        )
    )
    for option, mode in (("-r", 0o755), ("-rp", 0o777)):
        done = sandbox.cp(option, f"{sandbox.container.name}:runs")
        assert done.status == 0, done
        for name in ("set", "below"):
            found = stat.S_IMODE((sandbox.folder / "runs" / name).stat().st_mode)
            assert found == mode, name
        for name in ("pipe", "device"):
            assert f"left out `{name}`: it is neither file, folder nor link" in done.stderr, done
        assert sorted(path.name for path in (sandbox.folder / "runs").iterdir()) == ["below", "set"]
        shutil.rmtree(sandbox.folder / "runs")


def test_links_that_resolve_to_what_is_outside_are_left_out(sandbox: Sandbox) -> None:
    out = {
        "absolute": "/etc/passwd",
        "parent": "..",
        "later": "l/l/l/../../../etc/passwd",
        "none": "none/../../x",
    }
    members = [member(f"./{name}", LINK, to) for name, to in out.items()]
    kept = [member("./l", LINK, "."), member("./a", FOLDER), member("./a/up", LINK, "../a")]
    sandbox.answer(folder(*kept, *members))
    done = sandbox.cp("-r", f"{sandbox.container.name}:runs")
    assert done.status == 0, done
    for name in out:
        assert f"left out the link `{name}`: it leads out of the folder" in done.stderr, done
    assert sorted(path.name for path in (sandbox.folder / "runs").rglob("*")) == ["a", "l", "up"]


def test_nothing_goes_through_a_link_that_was_there_before(sandbox: Sandbox) -> None:
    (sandbox.folder / "runs").mkdir()
    (sandbox.folder / "runs" / "keys").symlink_to("../.ssh")
    sandbox.answer(folder(member("./keys", FOLDER), member("./keys/authorized_keys")))
    done = sandbox.cp("-r", f"{sandbox.container.name}:runs")
    assert done.status == 1, done
    assert "`keys` is in the way" in done.stderr or "keys` is in the way" in done.stderr, done
    assert sandbox.files() == PRECIOUS


def test_a_strangers_names_do_not_drive_the_terminal(sandbox: Sandbox) -> None:
    name = "\x1b]52;c;aGk=\x07\n\u202eevil"
    for stream in (
        folder(member(f"./{name}", FIFO), member(f"./{name}l", LINK, "/etc")),
        folder(member(f"./{name}/x")),
        b"d 0 0 " + name.encode() + b"\0\0",
    ):
        sandbox.answer(stream)
        done = sandbox.cp("-r", f"{sandbox.container.name}:runs")
        assert not {"\x1b", "\x07", "\u202e"} & set(done.stderr), done
        shutil.rmtree(sandbox.folder / "runs", ignore_errors=True)


def test_completion_takes_only_names(sandbox: Sandbox) -> None:
    inside = sandbox.container
    evil = ("good/", "../out", "a/b", "..", ".", "\x1b]0;evil\x07", "\u202eevil", "a\rb", "/")
    listed = "".join(f"{name}\n" for name in evil)
    inside.execute("mkdir", "-p", "/made")
    install(inside, "ls", f"#!/bin/sh\ncat <<'END'\n{listed}END\n")
    try:
        assert sandbox.laptop.jlr("shell", inside.name, "true").status == 0
        told = sandbox.laptop.completions(f"jlr cp {inside.name}:/made/")
    finally:
        inside.execute("rm", "/usr/local/sbin/ls")
    assert told == [f"{inside.name}:/made/good/"]
