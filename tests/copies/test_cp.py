"""`jlr cp` with a container and with the host itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jlremote.copies.local_tree import leads_out
from tests.copies.parts import on_terminal, same
from tests.lab.accounts import Account, claimed_account
from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.long import LONG

NAMES = ("it's a name", 'with "quotes"', "é\n$(id)", "-n", "a*b")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with odd names, modes and times, folders and links."""
    top = tmp_path_factory.mktemp("copies") / "tree"
    (top / "below" / "deep").mkdir(parents=True)
    for name in NAMES:
        (top / name).write_text(name, encoding="utf-8")
    for number in range(50):
        (top / "below" / "deep" / str(number)).write_text(str(number), encoding="utf-8")
    (top / "below" / "large").write_bytes(os.urandom(3_000_001))
    (top / "below" / "large").chmod(0o750)
    os.utime(top / "below" / "large", (1e9, 1e9))
    (top / "link").symlink_to("below/large")
    (top / "out").symlink_to("../../etc")
    (top / "below").chmod(0o555)
    return top


@pytest.mark.parametrize("where", ["session", "host"])
def test_a_tree_goes_there_and_back(
    owner: Laptop, inside: Container, tree: Path, tmp_path: Path, where: str
) -> None:
    place = inside.name if where == "session" else "lab"
    sent = owner.jlr("cp", "-rp", str(tree), f"{place}:sent")
    assert sent.status == 0, sent
    assert "it leads out of the folder" in sent.stderr
    got = owner.jlr("cp", "-rp", f"{place}:sent", str(tmp_path / "got"), "--json")
    assert (got.status, got.stderr) == (0, ""), got
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    assert json.loads(got.stdout) == {"files": len(files), "bytes": size, "skipped": []}
    same(tree, tmp_path / "got")
    assert not list(tmp_path.rglob("*.part"))


def test_a_tree_goes_into_folders_of_odd_names_again_and_again(
    owner: Laptop, account: Account, tree: Path, tmp_path: Path
) -> None:
    there = "--delete $(id)'"
    (account.home / there).mkdir()
    os.chown(account.home / there, *account.home.stat()[4:6])
    for _ in range(2):
        sent = owner.jlr("cp", "-r", str(tree), f"lab:./{there}")
        assert sent.status == 0, sent
        assert "copied 56 files" in sent.stderr, sent
    (account.home / there / "tree" / "link").unlink()
    (account.home / there / "tree" / "link").symlink_to("/etc")
    os.mkfifo(account.home / there / "tree" / "pipe")
    for _ in range(2):
        got = owner.jlr("cp", "-r", f"lab:./{there}/tree", str(tmp_path))
        assert got.status == 0, got
        assert "copied 56 files" in got.stderr, got
        assert "left out the link `link`" in got.stderr, got
        assert "left out `pipe`: it is neither" in got.stderr, got
    assert {path.name for path in (tmp_path / "tree").iterdir()} == {*NAMES, "below"}
    refused = owner.jlr("cp", "-r", str(tree / "below"), "lab:/etc/apt")
    assert refused.status == 1, refused
    assert "Permission denied" in refused.stderr


@pytest.mark.parametrize(
    ("way", "end"),
    [
        *(("up", "loss"), ("down", "ctrl-c")),
        *(LONG("up", "ctrl-c"), LONG("down", "loss"), LONG("down", "disconnect")),
    ],
)
def test_a_file_that_was_interrupted_leaves_nothing(
    owner: Laptop, sshd: SSHServer, account: Account, tmp_path: Path, way: str, end: str
) -> None:
    source = (tmp_path if way == "up" else account.home) / f"large-{way}-{end}"
    folder = (account.home if way == "up" else tmp_path) / "folder"
    folder.mkdir(exist_ok=True)
    os.chown(folder, *account.home.stat()[4:6])
    with source.open("wb") as file:
        file.truncate(4_000_000_000)
    os.chown(source, *account.home.stat()[4:6])
    words = (str(source), "lab:folder") if way == "up" else (f"lab:{source}", str(folder))
    with on_terminal(owner, "cp", *words) as terminal:
        wait_until(
            lambda: list(folder.rglob(f"{source.name}*")) or list(folder.rglob("0")), "a part", 60
        )
        if end == "loss":
            sshd.drop_connections()
        elif end == "disconnect":
            owner.jlr("disconnect", "lab", "--yes")
        else:
            terminal.type("\x03")
        assert terminal.process.wait(60) == (130 if end == "ctrl-c" else 5)
    source.unlink()
    wait_until(lambda: not list(folder.iterdir()), "nothing", 60)


def test_a_shell_completes_paths_there_while_the_link_is_up(
    owner: Laptop, inside: Container, account: Account
) -> None:
    inside.execute("sh", "-c", "mkdir -p '/made/a b' /made/.hidden; touch /made/abc")
    (account.home / "box").mkdir()

    def complete(typed: str) -> list[str]:
        line = ("COMP_WORDBREAKS=", f"COMP_LINE=jlr cp {typed}", "_JLR_COMPLETE=bash_complete")
        return list(filter(None, owner.run("env", *line, "jlr").stdout.splitlines()))

    assert owner.jlr("disconnect", "--all", "--yes").status == 0
    assert complete(f"{inside.name}:/ma") == []
    assert owner.jlr("shell", "lab", "true").status == 0
    assert complete(f"{inside.name}:/ma") == [f"plain,{inside.name}:/made/"]
    found = [f"plain,{inside.name}:/made/{name}" for name in ("a\\ b/", "abc")]
    assert sorted(complete(f"{inside.name}:/made/")) == found
    assert complete(f"{inside.name}:/made/.h") == [f"plain,{inside.name}:/made/.hidden/"]
    assert complete("lab:bo") == ["plain,lab:box/"]
    assert complete("lab:~/bo") == ["plain,lab:~/box/"]
    assert complete("/etc/host.c") == ["plain,/etc/host.conf"]


def test_a_folder_that_is_sent_is_told_before_a_disconnect_and_then_leaves_nothing(
    owner: Laptop, account: Account, tmp_path: Path
) -> None:
    source, there = tmp_path / "source", account.home / "goes"
    source.mkdir()
    there.mkdir()
    os.chown(there, *account.home.stat()[4:6])
    with (source / "large").open("wb") as file:
        file.truncate(4_000_000_000)
    with on_terminal(owner, "cp", "-r", str(source), f"lab:{there}") as terminal:
        wait_until(lambda: list(there.rglob("large")), "the first bytes", 60)
        told = owner.jlr("disconnect", "lab")
        assert "this would be lost: a copy of files in lab\n" in told.stderr, told
        assert owner.jlr("disconnect", "lab", "--yes").status == 0
        assert terminal.process.wait(60) == 5
    wait_until(lambda: not list(there.iterdir()), "nothing", 60)


def test_a_terminal_shows_rate_and_time_left(owner: Laptop, tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(300 << 20)
    with on_terminal(owner, "cp", str(large), "lab:large") as terminal:
        terminal.wait_for(" of 315 MB, ")
        terminal.wait_for("/s, ")
        terminal.wait_for("/s, 0:0")
        terminal.wait_for("copied 1 file, 315 MB")
        assert terminal.process.wait(60) == 0


def test_what_cannot_be_is_told(owner: Laptop, inside: Container, tmp_path: Path) -> None:
    name = inside.name
    for words, status, told in (
        ((f"{name}:/no/such", str(tmp_path)), 6, f"there is no file `{name}:/no/such`"),
        ((f"{name}:/etc", str(tmp_path)), 2, "`-r` copies it"),
        ((str(tmp_path / "none"), f"{name}:/tmp"), 6, "there is no file"),
        (("a", "b"), 2, "a copy needs one end on this machine"),
        ((f"{name}:a", "lab:b"), 2, "a copy needs one end on this machine"),
        ((f"{name}:/none*", str(tmp_path)), 6, f"nothing matches `{name}:/none*`"),
        ((f"{name}:/etc/hosts", str(tmp_path / "no" / "x")), 6, "there is no folder"),
        (("only",), 2, "needs a source and a target"),
    ):
        failed = owner.jlr("cp", *words)
        assert failed.status == status, failed
        assert told in failed.stderr, failed


@pytest.fixture
def full(account: Account, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Folders on small disks, in the account's home and here."""
    there, here = account.home / "full", tmp_path / "full"
    for disk in (there, here):
        disk.mkdir()
        mounted = subprocess.run(("mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "none", disk))
        if mounted.returncode:
            pytest.skip("this machine lets nobody mount a tmpfs")
    yield there, here
    for disk in (there, here):
        subprocess.run(("umount", disk), check=True)
        disk.rmdir()


@pytest.mark.parametrize("what", ["source/big", "source"])
def test_a_full_disk_is_told_with_file_place_and_reason_and_keeps_no_part(
    owner: Laptop, account: Account, full: tuple[Path, Path], tmp_path: Path, what: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "big").write_bytes(os.urandom(3_000_000))
    shutil.copytree(source, account.home / "source", dirs_exist_ok=True)
    sent = owner.jlr("cp", "-r", str(tmp_path / what), "lab:full/new")
    got = owner.jlr("cp", "-r", f"lab:{what}", str(full[1] / "new"))
    for done, place in ((sent, "lab:full/new"), (got, str(full[1]))):
        *_, error = done.stderr.splitlines()
        assert done.status == 1
        assert "big" in error
        assert place in error
        assert "no space" in error.lower(), error
        assert ".part" not in error
    for disk in full:
        assert not [path for path in disk.rglob("*") if path.is_file()]
        assert not list(disk.rglob("*part"))


def test_a_folder_that_cannot_be_used_is_told_with_its_reason(
    owner: Laptop, account: Account, tmp_path: Path
) -> None:
    """A path that the account may not look at is not called missing."""
    (file := tmp_path / "file").write_text("x")
    (account.home / "locked" / "below").mkdir(parents=True)  # root's
    (account.home / "locked").chmod(0o700)
    folder = tmp_path / "folder"
    folder.mkdir()
    for words, told in (
        ((str(file), "lab:locked/x"), "cannot copy `{file}` to `lab:locked/x`"),
        ((str(file), "lab:locked/below/x"), ""),
        (("-r", str(folder), "lab:locked/below"), ""),
        (("lab:locked/x", str(tmp_path)), "cannot look for `lab:locked/x`"),
        (("lab:locked/*.png", str(tmp_path)), "cannot look for `lab:locked/*.png`"),
        (("-r", "lab:locked/x", str(tmp_path)), "cannot look for `lab:locked/x`"),
    ):
        done = owner.jlr("cp", *words)
        assert done.status == 1, done
        assert told.format(file=file) in done.stderr, done
        assert "Permission denied" in done.stderr, done


def test_a_home_that_is_missing_is_told(
    laptop: Laptop, sshd: SSHServer, keys: Keys, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    with claimed_account() as other:
        laptop.add_host("homeless", sshd, other, key=keys.private)
        away = other.home.rename(other.home.with_name(f"{other.name}-away"))
        try:
            done = laptop.jlr("cp", str(tmp_path / "file"), "homeless:x")
        finally:
            away.rename(other.home)
    assert done.status == 1
    assert f"to `homeless:x`: .: Permission denied; the home folder {other.home}" in done.stderr


def test_a_link_here_is_replaced_and_not_followed(
    owner: Laptop, inside: Container, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("mine", encoding="utf-8")
    (tmp_path / "hosts").symlink_to("precious")
    assert owner.jlr("cp", f"{inside.name}:/etc/hosts", str(tmp_path / "hosts")).status == 0
    assert (tmp_path / "precious").read_text("utf-8") == "mine"
    assert not (tmp_path / "hosts").is_symlink()
    top = tmp_path / "top"
    top.mkdir()
    (top / "apt").symlink_to(tmp_path)
    blocked = owner.jlr("cp", "-r", f"{inside.name}:/etc/apt/..", str(top))
    assert "is in the way: it is a symbolic link" in blocked.stderr or blocked.status == 0


def test_a_link_is_judged_by_what_it_resolves_to(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "out").symlink_to("..")
    (tmp_path / "self").symlink_to(".")
    for text in ("..", "b", "b/none", "../a/b", ".", "../self/a"):
        assert not leads_out(text, tmp_path / "a", tmp_path), text
    for text in (
        *(f"{tmp_path}/a", "../..", "../../top2", "", "../out", "../out/x"),
        *("b/../../../x", "../self/../../x", "../self/self/../../../etc/passwd", "none/.."),
    ):
        assert leads_out(text, tmp_path / "a", tmp_path), text
