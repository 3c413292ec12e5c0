"""Copies by tar with the tools that places have, on this machine's own folders."""

from __future__ import annotations

import io
import os
import shutil
import socket
import stat
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jlremote.copies.exchange import CopyReport
from jlremote.copies.names import RemotePath
from jlremote.errors import JlrError, NotFound, Usage
from tests.copies.parts import Answering, LocalPlace, fetch
from tests.long import WANTED

NAMES = ("-n", "é\n$(id)", "漢" * 85, os.fsdecode(b"\xff"), "a b", ".hidden", "a*b", "\\", "'\"")
GNU = ("sh", "du", "mv", "mkdir", "rm", "chmod")


def _tools(folder: Path, kind: str) -> None:
    """Fill a folder with what a place of this kind has on its PATH."""
    programs = {name: shutil.which(name) for name in GNU}
    if kind == "busybox":
        programs = {name: shutil.which("busybox") for name in (*GNU, "tar")}
    else:
        programs["tar"] = shutil.which({"gnu": "tar", "bsdtar": "bsdtar"}[kind])
    for name, program in programs.items():
        if program is None:
            pytest.skip(f"`{kind}` is not installed")
        (folder / name).symlink_to(program)


@pytest.fixture(params=["gnu", "busybox", "bsdtar"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> LocalPlace:
    for name in ("home", "tools"):
        (tmp_path / name).mkdir()
    _tools(tmp_path / "tools", request.param)
    return LocalPlace(tmp_path / "home", tmp_path / "tools")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with odd names, modes and times, folders and links."""
    top = tmp_path_factory.mktemp("trees") / "tree"
    (top / "below" / "deep" / "empty").mkdir(parents=True)
    for name in NAMES:
        (top / name).write_text(name, encoding="utf-8", errors="surrogateescape")
    for number, size in enumerate((0, 1, 511, 512, 513, 3_000_001)):
        (top / "below" / f"{number}").write_bytes(os.urandom(size))
    os.link(top / "below" / "4", top / "below" / "linked")
    (top / "below" / "5").chmod(0o750)
    os.utime(top / "below" / "5", (1e9, 1e9))
    (top / "link").symlink_to("below/5")
    (top / "below" / "up").symlink_to("../-n")
    (top / "out").symlink_to("../../etc")
    os.mkfifo(top / "pipe")
    (top / "below").chmod(0o555)
    return top


@pytest.mark.parametrize("preserve", [False, True])
def test_modes_are_those_of_umask_or_plain_ones(
    place: LocalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preserve: bool
) -> None:
    source, got = tmp_path / "source", tmp_path / "got"
    for folder in (source, got):
        folder.mkdir()
    for name in ("set", "open"):
        (source / name).touch()
    (source / "below").mkdir()
    (source / "set").chmod(0o6755)
    (source / "open").chmod(0o666)
    (source / "below").chmod(0o3777)
    place.umask = 0o027
    place.send(source, into="sent", preserve=preserve)
    for path, mode in (("set", 0o4755), ("open", 0o666), ("below", 0o1777)):
        found = stat.S_IMODE((place.home / "sent" / path).stat().st_mode)
        assert found == (mode & 0o777 if preserve else mode & 0o750), path
        (place.home / "sent" / path).chmod(mode)
    before = os.umask(0o077)
    try:
        place.fetch("sent", "sent/set", into=got, preserve=preserve)
    finally:
        os.umask(before)
    for path, mode in (
        ("sent/set", 0o755),
        ("set", 0o755),
        ("sent/open", 0o666),
        ("sent/below", 0o777),
    ):
        found = stat.S_IMODE((got / path).stat().st_mode)
        assert found == (mode if preserve else mode & 0o700), path


@pytest.mark.lab
def test_files_folders_patterns_and_names(place: LocalPlace, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", ".c.csv", "d[1].csv", "d1.csv", "no", "é.csv"):
        (place.home / "runs").mkdir(exist_ok=True)
        (place.home / "runs" / name).write_text(name, encoding="utf-8")
    (place.home / "led").symlink_to("runs")
    (place.home / "one").symlink_to("runs/no")
    got = tmp_path / "got"

    def fetched(*sources: str) -> list[str]:
        shutil.rmtree(got, ignore_errors=True)
        got.mkdir()
        place.fetch(*sources, into=got)
        return sorted(str(path.relative_to(got)) for path in got.rglob("*"))

    assert fetched("runs/*.csv") == ["a.csv", "b.csv", "d1.csv", "d[1].csv", "é.csv"]
    assert fetched("runs/[!a].csv", "~/runs/no") == ["b.csv", "no"]
    assert fetched("runs/d[1].csv") == ["d[1].csv"]
    assert fetched(f"{place.home}/r*s/.*.csv") == [".c.csv"]
    assert fetched("*/no", "one") == ["no", "one"]
    assert (got / "one").read_text(encoding="utf-8") == "no"
    runs = sorted(path.name for path in (place.home / "runs").iterdir())
    assert fetched("led/") == ["led", *(f"led/{name}" for name in runs)]
    assert fetched("runs/..")[-2:] == ["runs/no", "runs/é.csv"]
    assert fetched("~/runs/.") == fetched("runs/./") == runs
    for sources, error, told in (
        (("none",), NotFound, "there is no file `place:none`"),
        (("no*",), NotFound, "nothing matches `place:no\\*`"),
    ):
        with pytest.raises(error, match=told):
            place.fetch(*sources, into=got)
    with pytest.raises(NotFound, match="is not a folder"):
        place.fetch("runs/*.csv", into=tmp_path / "new")
    with pytest.raises(Usage, match="`runs` is a folder"):
        place.fetch("runs", into=got, recursive=False)
    with pytest.raises(NotFound, match="there is no folder"):
        place.fetch("one", into=tmp_path / "none" / "one")
    assert not list(tmp_path.rglob("*.part"))


def test_where_files_and_folders_go_there(place: LocalPlace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("new", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "-n").write_text("new", encoding="utf-8")
    (place.home / "file").write_text("old", encoding="utf-8")
    (place.home / "is").mkdir()
    place.send(tmp_path / "file", into="file")
    place.send(tmp_path / "file", into="~/is/-n")
    place.send(tmp_path / "file", tmp_path / "folder", into=f"{place.home}/is")
    place.send(tmp_path / "folder", into="is/new")
    place.send(tmp_path / "folder", into="-n")
    found = sorted(str(path.relative_to(place.home)) for path in place.home.rglob("*"))
    assert found == [
        *("-n", "-n/-n", "file"),
        *("is", "is/-n", "is/file", "is/folder", "is/folder/-n", "is/new", "is/new/-n"),
    ]
    assert {path.read_text("utf-8") for path in place.home.rglob("*") if path.is_file()} == {"new"}
    for sources, into, told in (
        (("file", "folder"), "new", "`place:new` is not a folder"),
        (("file",), "none/", "`place:none/` is not a folder"),
        (("folder",), "file", "`place:file` is not a folder"),
        (("file",), "none/file", "there is no folder for `place:none/file`"),
        (("none",), "is", "there is no file"),
    ):
        with pytest.raises(NotFound, match=told):
            place.send(*(tmp_path / name for name in sources), into=into)
    (place.home / "is" / "file").unlink()
    (place.home / "is" / "file").mkdir()
    with pytest.raises(JlrError, match="it is a folder"):
        place.send(tmp_path / "file", into="is")
    assert not list(place.home.rglob("*.part"))


def test_a_source_that_changes_is_an_error_and_gets_no_name(
    place: LocalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    moved = CopyReport.moved

    def grow(report: CopyReport, count: int) -> None:
        with (tmp_path / "file").open("ab") as file:
            file.write(b"more")
        moved(report, count)

    monkeypatch.setattr(CopyReport, "moved", grow)
    with pytest.raises(JlrError, match="changed while it was copied"):
        place.send(tmp_path / "file", into="there")
    assert list(place.home.iterdir()) == []


@pytest.mark.parametrize("place", ["gnu"], indirect=True)
def test_a_file_that_changes_there_gets_no_name_and_a_folder_is_copied_with_an_error(
    place: LocalPlace, tmp_path: Path
) -> None:
    (place.tools / "tar").unlink()
    program = f"{shutil.which('tar')} \"$@\"; echo 'tar: x: file changed as we read it' >&2; exit 1"
    (place.tools / "tar").write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
    (place.tools / "tar").chmod(0o755)
    (place.home / "folder").mkdir()
    (place.home / "folder" / "x").write_text("x", encoding="utf-8")
    with pytest.raises(JlrError, match="x: file changed as we read it"):
        place.fetch("folder/x", into=tmp_path)
    assert not (tmp_path / "x").exists()
    with pytest.raises(JlrError, match="x: file changed as we read it"):
        place.fetch("folder", into=tmp_path)
    assert (tmp_path / "folder" / "x").read_text(encoding="utf-8") == "x"


def test_sockets_are_left_out_with_a_word(place: LocalPlace, tmp_path: Path) -> None:
    (place.home / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place.home / "folder" / "s"))
    place.fetch("folder", into=tmp_path)
    place.send(place.home / "folder", into="new")
    told, sent = place.report.skipped
    assert "left out" in told
    assert sent.endswith("s`: it is neither file, folder nor link")
    assert not list((tmp_path / "folder").iterdir())


@pytest.mark.parametrize("program", ["true", "cat"])
def test_a_shell_that_ran_nothing_has_copied_nothing(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Startup files may end in `exit 0`, or in `exec cat`."""
    place = LocalPlace(tmp_path, Path("/usr/bin"))
    process = place.process
    monkeypatch.setattr(place, "process", lambda _: process((program,)))
    with pytest.raises(EOFError, match="did not say that the copy has arrived"):
        place.send(tree, into="there")
    with pytest.raises(EOFError, match="no list of files"):
        place.fetch("there", into=tmp_path)


def test_without_tar_it_is_said(tmp_path: Path) -> None:
    for name in ("home", "tools"):
        (tmp_path / name).mkdir()
    _tools(tmp_path / "tools", "gnu")
    (tmp_path / "tools" / "tar").unlink()
    place = LocalPlace(tmp_path / "home", tmp_path / "tools")
    (place.home / "file").touch()
    with pytest.raises(JlrError, match="there is no `tar` there"):
        place.fetch("file", into=tmp_path)
    with pytest.raises(JlrError, match="there is no `tar` there"):
        place.send(tmp_path / "tools", into="new")
    assert [path.name for path in place.home.iterdir()] == ["file"]
    assert not (tmp_path / "file").exists()


def _tarred(*members: tuple[str, bytes, str, dict[str, str]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, link, records in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.pax_headers = kind, link, records
            info.size = 5 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"bytes"))
    return packed.getvalue()


NAMED = st.sampled_from(
    [".", "./a", "./a/b", "a", "b", "a/b", "./..", "../x", "/x", "a/../../x", "é", "x" * 300, "a\n"]
)
KINDS = st.sampled_from([b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"L", b"K", b"x", b"g", b"S"])
LEADS = st.sampled_from(["", ".", "..", "a", "b", "../../x", "/etc/passwd", "a/../..", "x" * 300])
RECORDS = st.dictionaries(
    st.sampled_from(["path", "linkpath", "size", "mtime", "GNU.sparse.map", "GNU.sparse.major"]),
    st.sampled_from(
        ["a", "../x", "/x", "-1", "9" * 5000, "nan", "inf", "1e999", "0,1,2", "1", "a\0b"]
    ),
    max_size=2,
)
MEMBERS = st.lists(st.tuples(NAMED, KINDS, LEADS, RECORDS), max_size=5)


@pytest.mark.lab
@given(MEMBERS, st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=12)), max_size=3))
@settings(max_examples=300 if WANTED else 60)
@example([("./a", b"2", "x" * 300, {})], [])
def test_no_archive_is_a_bug_or_leads_elsewhere(
    members: list[tuple[str, bytes, str, dict[str, str]]], changes: list[tuple[float, bytes]]
) -> None:
    stream = bytearray(b"d 0 1 runs\0\0" + _tarred((".", b"5", "", {}), *members))
    for where, data in changes:
        at = int(where * len(stream))
        stream[at : at + len(data)] = data
    _check_safe(bytes(stream))


LONG = tarfile.TarInfo("long")
LONG.type, LONG.size = tarfile.GNUTYPE_LONGNAME, 512
HUGE = tarfile.TarInfo("huge")
HUGE.type, HUGE.size = tarfile.XHDTYPE, 6 << 30


@pytest.mark.parametrize(
    "archive",
    [
        (LONG.tobuf(tarfile.GNU_FORMAT) + bytes(512)) * 3000,
        HUGE.tobuf(tarfile.GNU_FORMAT) + bytes(4 << 20),
    ],
    ids=["a thousand headers of one file", "a header of gigabytes"],
)
def test_headers_without_an_end_are_refused(archive: bytes) -> None:
    assert _check_safe(b"d 0 1 runs\0\0" + archive)


def _check_safe(stream: bytes) -> bool:
    """Return whether a copy failed; check that it wrote in its folder alone."""
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "into"
        into.mkdir()
        failed = False
        try:
            fetch(Answering(stream), RemotePath("place", "runs"), into)
        except JlrError:
            failed = True
        assert [path.name for path in Path(folder).iterdir()] == ["into"]
        assert {path.name for path in into.iterdir()} <= {"runs"}
        for path in into.rglob("*"):
            assert stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
            assert Path(os.path.realpath(path)).is_relative_to(into)
    return failed
