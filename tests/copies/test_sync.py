"""`jlr sync` with a container and with the host itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from jlremote.copies.exchange import CopyPlace, CopyReport
from jlremote.copies.local_tree import read_tree
from jlremote.copies.sync import SyncRequest, exchanged
from jlremote.errors import JlrError, Usage
from tests.copies.parts import Answering, LocalPlace, on_terminal
from tests.lab.accounts import Account
from tests.lab.containers import Container
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.stories.parts import Notes

NAMES = ("it's a name", "é\n$(id)", "-n", "a*b", "\udcff")


@pytest.fixture
def proj(tmp_path: Path) -> Path:
    """A project with odd names, rules, a link, and a program."""
    top = tmp_path / "proj"
    (top / "pkg" / "out").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / ".git" / "HEAD").write_text("x")
    (top / ".gitignore").write_text("*.log\nout/\n!kept.log\n")
    (top / ".jlrignore").write_text("/secret\n")
    (top / "pkg" / ".gitignore").write_text("*.tmp\n")
    for name in (*NAMES, "secret", "a.log", "kept.log", "pkg/b.tmp", "pkg/out/c", "pkg/train.py"):
        (top / name).write_text(name.encode("utf-8", "replace").decode(), encoding="utf-8")
    (top / "pkg" / "train.py").write_text("#!/bin/sh\necho ran\n")
    (top / "pkg" / "train.py").chmod(0o755)
    (top / "link").symlink_to("pkg/train.py")
    (top / "leads").symlink_to("/etc")
    return top


SENT = {*NAMES, ".gitignore", ".jlrignore", "kept.log", "link", "pkg/.gitignore", "pkg/train.py"}


def test_rules_leave_out_what_git_would_and_what_leads_out(proj: Path) -> None:
    left: list[str] = []
    found = read_tree(proj, left.append)
    assert set(found) == {*SENT, "pkg"}
    assert left == ["left out the link `leads`: it leads out of the folder"]
    assert found["pkg/train.py"][3] is True
    (proj / "pkg" / ".gitignore").write_text("!*.log\n")
    (proj / "pkg" / "d.log").touch()
    assert "pkg/d.log" in read_tree(proj, left.append)


def test_what_cannot_be_read_is_not_taken_for_missing(
    proj: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (proj / ".jlrignore").write_text("a[\n!\n")
    with pytest.raises(Usage):
        read_tree(proj, print)
    (proj / ".jlrignore").unlink()

    def refused(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(JlrError, match="cannot read"):
        read_tree(proj, print)


@pytest.mark.parametrize("where", ["session", "host"])
def test_a_folder_goes_there_and_then_only_what_differs(
    owner: Laptop, inside: Container, account: Account, proj: Path, where: str
) -> None:
    target = f"{inside.name}:sent" if where == "session" else "lab"

    def there(command: str) -> str:
        place = ("cd sent && " if where == "session" else "cd proj && ") + command
        return owner.jlr("shell", target.partition(":")[0], "--", "sh", "-c", place).stdout

    def sync(*options: str) -> dict[str, list[str]]:
        done = owner.jlr("sync", str(proj), target, "--json", *options)
        assert done.status == 0, done
        return {name: value for name, value in json.loads(done.stdout).items() if value}

    first = sync()
    assert len(first["sent"]) == len(SENT)
    assert first["skipped"] == ["left out the link `leads`: it leads out of the folder"]
    assert there("cat kept.log; ./link") == "kept.logran\n"
    assert "sent" not in sync()
    (proj / "pkg" / "train.py").write_text("print(2)")
    (proj / "kept.log").unlink()
    there("echo theirs >theirs; echo more >>-n")
    (proj / "-n").unlink()
    again = sync()
    assert (again["sent"], again["deleted"]) == (["pkg/train.py"], ["kept.log"])
    assert again["kept"] == ["-n"]
    assert there("cat theirs -- -n pkg/train.py") == "theirs\n-nmore\nprint(2)"


def test_a_conflict_is_an_error_that_names_the_file_and_the_way(
    owner: Laptop, account: Account, proj: Path
) -> None:
    (there := account.home / "clash").mkdir()
    (there / "kept.log").write_text("was here before")
    os.chown(there, *account.home.stat()[4:6])
    os.chown(there / "kept.log", *account.home.stat()[4:6])
    done = owner.jlr("sync", str(proj), "lab:clash")
    assert done.status == 1, done
    assert "`kept.log`" in done.stderr
    assert f"`jlr sync {proj} lab:clash --overwrite`" in done.stderr
    assert (there / "kept.log").read_text() == "was here before"
    assert (there / "pkg" / "train.py").exists()
    assert owner.jlr("sync", str(proj), "lab:clash", "--overwrite").status == 0
    assert (there / "kept.log").read_text() == "kept.log"


def test_what_cannot_be_is_told(
    owner: Laptop, inside: Container, account: Account, proj: Path, tmp_path: Path
) -> None:
    (empty := tmp_path / "empty").mkdir()
    (empty / "file").touch()
    assert owner.jlr("sync", str(empty), "lab:emptied").status == 0
    (empty / "file").unlink()
    for words, status, told in (
        (("/", "lab"), 2, "all of this machine"),
        ((str(owner.folder / "home"), "lab"), 2, "your home folder"),
        ((str(proj), "lab:/"), 2, "is `/` or the home folder there"),
        ((str(proj), f"lab:{account.home}"), 2, "`lab:proj`"),
        ((f"{proj}/none", "lab"), 6, "there is no folder"),
        ((str(empty), "lab:emptied"), 1, "is empty"),
        ((str(proj), "lab:/etc/x"), 1, "Permission denied"),
    ):
        failed = owner.jlr("sync", *words)
        assert failed.status == status, failed
        assert told in failed.stderr, failed
    shown = owner.jlr("sync", str(proj), "lab:dry", "--dry-run")
    assert "send pkg/train.py\n" in shown.stdout
    assert not (account.home / "dry").exists()


def test_a_container_without_python_is_told_what_is_needed(
    owner: Laptop, inside: Container, proj: Path
) -> None:
    away = "for p in /usr/bin/python* /usr/local/bin/python*; do"
    inside.execute("sh", "-c", f'{away} [ ! -e "$p" ] || mv "$p" "$p.away"; done')
    try:
        failed = owner.jlr("sync", str(proj), inside.name)
    finally:
        inside.execute("sh", "-c", f'{away} [ ! -e "$p" ] || mv "$p" "${{p%.away}}"; done')
    assert failed.status == 6, failed
    assert "needs Python 3.6" in failed.stderr
    assert "`jlr cp -r" in failed.stderr


@pytest.fixture
def full(account: Account) -> Iterator[Path]:
    """A folder on a small disk, in the account's home."""
    (disk := account.home / "full").mkdir()
    mounted = subprocess.run(("mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "none", disk))
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    yield disk
    subprocess.run(("umount", disk), check=True)
    disk.rmdir()


def test_a_full_disk_leaves_the_old_files_whole(owner: Laptop, full: Path, proj: Path) -> None:
    assert owner.jlr("sync", str(proj), "lab:full").status == 0
    (proj / "-n").write_text("new")
    (proj / "zzz").write_bytes(os.urandom(3_000_000))
    failed = owner.jlr("sync", str(proj), "lab:full")
    assert failed.status == 1, failed
    assert "no space" in failed.stderr.lower(), failed
    assert (full / "-n").read_text() == "-n"
    assert not (full / ".jlr-sync" / "new").exists()
    (proj / "zzz").unlink()
    assert owner.jlr("sync", str(proj), "lab:full").status == 0
    assert (full / "-n").read_text() == "new"


def test_with_watch_what_is_saved_is_there_within_seconds_also_after_a_loss(
    owner: Laptop, sshd: SSHServer, account: Account, proj: Path
) -> None:
    there = account.home / "watched"
    with on_terminal(owner, "sync", str(proj), "lab:watched", "--watch") as terminal:
        wait_until((there / "kept.log").exists, "the first sync", 60)
        for number in range(3):
            (proj / "kept.log").write_text(f"{number}")
            wait_until(lambda: (there / "kept.log").read_text() == f"{number}", "the edit", 20)  # noqa: B023
        sshd.drop_connections()
        (proj / "new").write_text("new")
        wait_until((there / "new").exists, "the new file", 60)
        (proj / "new").unlink()
        wait_until(lambda: not (there / "new").exists(), "its end", 20)
        terminal.type("\x03")
        assert terminal.process.wait(60) == 130


def test_more_folders_than_the_system_watches_are_told(owner: Laptop, proj: Path) -> None:
    limit = 'echo 1 >/proc/sys/user/max_inotify_watches; "$@"'
    limited = ("unshare", "-Ur", "sh", "-c", limit, "-")
    told = owner.run(*limited, str(PROGRAMS / "jlr"), "sync", str(proj), "lab:many", "--watch")
    assert told.status == 1, told
    assert "file watch limit reached\nhint: `sudo sysctl" in told.stderr, told


def test_two_that_watch_into_one_folder_lose_no_file_of_either(
    owner: Laptop, account: Account, proj: Path, tmp_path: Path
) -> None:
    (other := tmp_path / "other").mkdir()
    (other / "theirs").write_text("0")
    saved, theirs, late = (account.home / "both" / name for name in ("kept.log", "theirs", "late"))
    with ExitStack() as stack:

        def watch(folder: Path, first: Path) -> None:
            stack.enter_context(on_terminal(owner, "sync", str(folder), "lab:both", "--watch"))
            wait_until(first.exists, "the first sync", 60)

        watch(proj, saved)
        watch(proj, saved)
        for number in range(5):
            (proj / "kept.log").write_text(f"{number}")
            wait_until(lambda: saved.read_text() == f"{number}", "the edit", 60)  # noqa: B023
        watch(other, theirs)
        (proj / "late").touch()
        wait_until(late.exists, "a file of the first", 60)
    assert (saved.read_text(), theirs.read_text(), late.exists()) == ("4", "0", True)


def test_a_start_syncs_into_the_session(owner: Laptop, inside: Container, proj: Path) -> None:
    command = f"cd {proj} && {PROGRAMS}/jlr start lab {inside.name} --no-browser --sync"
    started = owner.run("sh", "-c", command)
    assert started.status == 0, started
    assert inside.execute("cat", "/srv/kept.log") == "kept.log"
    inside.execute("sh", "-c", "echo theirs >>/srv/kept.log")
    (proj / "kept.log").write_text("ours")
    clashed = owner.run("sh", "-c", command)
    assert (clashed.status, clashed.stdout) == (1, started.stdout), clashed
    assert "`kept.log`" in clashed.stderr
    assert owner.jlr("stop", inside.name, "--yes").status == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"want": [99]},
        {"want": [[0]]},
        {"want": "0"},
        {"want": [1.0]},
        [],
        {"into": "/x"},
        {"into": "x\n", "sent": [], "deleted": [], "kept": [], "conflicts": []},
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(tmp_path: Path, answer: object) -> None:
    (tmp_path / "file").touch()
    place = cast("CopyPlace", Answering(json.dumps(answer).encode() + b"\n"))
    with pytest.raises(JlrError, match="refused what the host sent"):
        exchanged(SyncRequest(tmp_path, "lab"), CopyReport(Notes()), place)


@pytest.fixture
def place(tmp_path: Path) -> LocalPlace:
    """A folder of this machine, with `sh` and Python."""
    for name in ("home", "tools"):
        (tmp_path / name).mkdir()
    for name in ("sh", "python3"):
        (tmp_path / "tools" / name).symlink_to(f"/usr/bin/{name}")
    return LocalPlace(tmp_path / "home", tmp_path / "tools")


@pytest.mark.parametrize("times", [1, 99])
def test_a_file_that_grows_while_it_is_sent_is_sent_again_or_named(
    place: LocalPlace, proj: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    (log := proj / "grows").write_text("x" * 5000)
    left, fstat = [times], os.fstat

    def growing(number: int) -> os.stat_result:
        if left[0] and os.path.realpath(f"/proc/self/fd/{number}") == str(log):
            left[0] -= 1
            log.write_text(log.read_text() + "y")
        return fstat(number)

    monkeypatch.setattr(os, "fstat", growing)
    request = SyncRequest(proj, "lab", "there")
    done = exchanged(request, place.report, cast("CopyPlace", place))
    there = place.home / "there"
    assert (there / "pkg" / "train.py").exists()
    told = [why for why in done.skipped if "grows" in why]
    if times == 1:
        assert ((there / "grows").read_text(), told) == (log.read_text(), [])
        assert done.sent.count("pkg/train.py") == done.sent.count("grows") == 1
    else:
        assert told == ["did not send `grows`: it changes all the time"]
        assert not (there / "grows").exists()
