"""A mounted folder is one's own folder: every change arrives on the other side."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.long import WANTED
from tests.mounts.parts import Desk, LoginCounter, attempt, own, remember_session

MEGABYTES = 1024 if WANTED else 64


def test_what_is_made_changed_renamed_and_deleted_here_is_so_on_the_host(desk: Desk) -> None:
    desk.mount()
    file = desk.local / "train.py"
    file.write_bytes(b"print(1)\n")
    assert desk.has_project("train.py", b"print(1)\n")
    with file.open("ab") as more:
        more.write(b"print(2)\n")
    assert desk.has_project("train.py", b"print(1)\nprint(2)\n")
    folder = desk.local / "old"
    folder.mkdir()
    file.rename(folder / "first.py")
    assert desk.has_project("old/first.py", b"print(1)\nprint(2)\n")
    (folder / "first.py").unlink()
    folder.rmdir()
    assert list(desk.project.iterdir()) == []


def test_an_editor_that_replaces_a_file_replaces_it_on_the_host(desk: Desk) -> None:
    (desk.project / "notes.md").write_text("old")
    own(desk.account, desk.project)
    desk.mount()
    draft = desk.local / ".notes.md.swp"
    draft.write_text("new")
    draft.replace(desk.local / "notes.md")
    assert desk.has_project("notes.md", b"new")
    assert [path.name for path in desk.project.iterdir()] == ["notes.md"]


def test_large_files_arrive_whole_both_ways(desk: Desk, tmp_path: Path) -> None:
    room = min(shutil.disk_usage(folder).free for folder in (tmp_path, desk.project)) >> 20
    megabytes = min(MEGABYTES, room // 5)  # three copies, and something for others
    desk.mount()
    up, down = tmp_path / "up", tmp_path / "down"
    block = os.urandom(1 << 20)
    with up.open("wb") as file:
        for number in range(megabytes):
            file.write(block[number:] + block[:number])
    assert attempt("cp", str(up), str(desk.local / "big"), patience=280).error == 0
    assert attempt("cp", str(desk.local / "big"), str(down), patience=280).error == 0
    expected = _digest(up)
    assert _digest(desk.project / "big") == expected
    assert _digest(down) == expected
    for copy in (up, down):  # pytest keeps the folder
        copy.unlink()


def test_files_belong_to_the_user_and_others_may_not_look(desk: Desk) -> None:
    own(desk.account, _write(desk.project / "mine", b"x"))
    program = own(desk.account, _write(desk.project / "program", b"#!/bin/sh\n"))
    program.chmod(0o4755)
    desk.mount()
    assert (desk.local / "mine").stat().st_uid == os.getuid()
    assert desk.project.stat().st_uid == desk.account.uid != os.getuid()
    [line] = [line for line in _mountinfo() if f" {desk.local} " in line]
    options = line.split(" - ")[0].split()[5].split(",")
    assert {"nosuid", "nodev"} <= set(options)
    assert "allow_other" not in line
    look = attempt(
        "setpriv", f"--reuid={desk.account.uid}", "--clear-groups", "ls", str(desk.local)
    )
    assert look.error != 0


def test_links_that_lead_out_of_the_mount_are_not_followed(desk: Desk) -> None:
    (desk.project / "inside").symlink_to("target")
    (desk.project / "target").write_bytes(b"here")
    (desk.project / "docs").mkdir()
    (desk.project / "docs/beside").symlink_to("../target")
    git = ("git", "-c", "user.name=ada", "-c", "user.email=ada@lab", "-c", "safe.directory=*")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "links")):
        subprocess.run((*git, "-C", str(desk.project), *words), check=True)
    (desk.project / "secrets").symlink_to("/etc/hostname")
    (desk.project / "above").symlink_to("../../etc/hostname")
    (desk.project / "docs/above").symlink_to("../../project/target")
    (desk.project / "docs/winding").symlink_to("../docs/../../project/target")
    own(desk.account, desk.project)
    desk.mount()
    status = (*git, "-C", str(desk.local), "status", "--porcelain", "--untracked-files=no")
    clean = attempt(*status)
    assert (clean.error, clean.answer) == (0, "")
    for name in ("inside", "docs/beside"):
        assert (desk.local / name).read_bytes() == b"here"
    for name in ("secrets", "above", "docs/above", "docs/winding"):
        with pytest.raises(PermissionError):
            (desk.local / name).read_bytes()


def test_a_folder_of_a_host_needs_no_session_and_all_that_was_made_goes(desk: Desk) -> None:
    own(desk.account, _write(desk.project / "data", b"x"))
    deep = desk.laptop.folder / "home" / "made" / "for" / "it"
    for record in desk.laptop.folder.rglob("sessions/*.json"):
        record.unlink()
    desk.jlr("mount", "lab:project", str(deep))
    assert (deep / "data").read_bytes() == b"x"
    [report] = json.loads(desk.jlr("mount", "--json").stdout)
    assert (report["host"], report["session"], report["state"]) == ("lab", None, "up")
    for process in desk.sshfs():
        process.kill()
    desk.jlr("mount", str(deep))
    assert (deep / "data").read_bytes() == b"x"
    desk.jlr("mount", "--unmount", str(deep))
    assert not deep.parent.parent.exists()


def test_a_mount_that_fails_takes_back_every_folder_that_it_made(desk: Desk) -> None:
    deep = desk.laptop.folder / "home" / "made" / "for" / "it"
    deep.parent.parent.mkdir()
    with failing_sshfs(desk.laptop):
        failed = desk.jlr("mount", str(deep), "bare:project", code=1)
    assert "no device today" in failed.stderr
    assert list(deep.parent.parent.iterdir()) == []
    assert desk.states() == []


def test_a_mount_that_fails_forgets_nothing_of_the_one_that_was_there_before(desk: Desk) -> None:
    desk.mount("bare:project", "--read-only")
    for process in desk.sshfs():
        process.kill()
    subprocess.run(("umount", "--lazy", str(desk.local)), check=True)
    with failing_sshfs(desk.laptop):
        desk.jlr("mount", str(desk.local), code=1)
    [report] = json.loads(desk.jlr("mount", "--json").stdout)
    assert (report["remote"], report["state"]) == (str(desk.project), "unmounted")
    desk.jlr("mount", str(desk.local))
    [report] = json.loads(desk.jlr("mount", "--json").stdout)
    assert (report["read_only"], report["state"]) == (True, "up")


@contextmanager
def failing_sshfs(laptop: Laptop) -> Iterator[None]:
    """Let the sshfs that is found first be one that never mounts."""
    folder, path = laptop.folder / "bin", laptop.environment["PATH"]
    folder.mkdir()
    program = folder / "sshfs"
    program.write_text("#!/bin/sh\necho 'fuse: no device today' >&2; exit 1\n", encoding="utf-8")
    program.chmod(0o755)
    laptop.environment["PATH"] = f"{folder}:{path}"
    yield
    laptop.environment["PATH"] = path


def test_a_file_or_a_folder_that_is_not_empty_is_no_place_to_mount(desk: Desk) -> None:
    _write(desk.local, b"x")
    assert "is a file" in desk.mount(code=2).stderr
    desk.local.unlink()
    desk.local.mkdir()
    _write(desk.local / "mine", b"x")
    assert "not empty" in desk.mount(code=2).stderr
    assert not desk.is_mounted()


def test_mounting_again_or_over_a_mount_changes_nothing(desk: Desk) -> None:
    desk.mount()
    sshfs = [process.pid for process in desk.sshfs()]
    assert "already mounted" in desk.jlr("mount", str(desk.local)).stderr
    assert "already" in desk.mount("bare:elsewhere", code=2).stderr
    inside = desk.jlr("mount", str(desk.local / "sub"), "bare:project", code=2)
    assert "lies in the mount" in inside.stderr
    assert [process.pid for process in desk.sshfs()] == sshfs
    assert desk.unmount().stdout == f"unmounted {desk.local}\n"


def test_what_cannot_be_mounted_is_told(desk: Desk) -> None:
    assert "~/nowhere" in desk.mount("bare:nowhere", code=6).stderr
    refusal = desk.jlr("mount", "lab", str(desk.local), code=6).stderr
    assert "`lab` is a host and not a session" in refusal
    assert f"`jlr mount {desk.local} lab:DIR` mounts a folder of it" in refusal
    desk.jlr("mount", str(desk.local) + "\n", "bare:project", code=2)
    (desk.project / "a\nb").mkdir()
    assert "control characters" in desk.mount("bare:project/a\nb", code=2).stderr
    assert not desk.local.exists()
    assert desk.states() == []


def test_without_a_folder_that_of_the_same_name_is_mounted(desk: Desk) -> None:
    """The session's server does not run, so its folder is unknown."""
    local = desk.local.with_name("project")
    own(desk.account, _write(desk.project / "x", b"1"))
    desk.jlr("mount", str(local))
    assert (local / "x").read_bytes() == b"1"


def test_a_name_of_any_kind_works_on_both_sides(desk: Desk) -> None:
    for name in (
        "with blanks  two",
        "comma,colon:equals=",
        "-o allow_other",
        "quote'double\"dollar$(id)`id`",
        "back\\slash",
        "ünï-日本",
        "*?[x]#%~",
    ):
        remote = desk.project / name
        remote.mkdir()
        own(desk.account, _write(remote / "file", b"x"))
        own(desk.account, remote)
        local = desk.laptop.folder / "home" / name
        desk.jlr("mount", "--", str(local), f"bare:project/{name}")
        assert (local / "file").read_bytes() == b"x", name
        [report] = json.loads(desk.jlr("mount", "--json").stdout)
        assert (report["local"], report["remote"]) == (str(local), str(remote))
        assert report["state"] == "up"
        desk.jlr("mount", "--unmount", "--", str(local))
        assert not desk.is_mounted(local), name


def test_the_name_of_a_folder_there_is_no_option_of_the_mount(desk: Desk) -> None:
    folder = "x,allow_other,suid,dev,fsname=y\\,exec"
    (desk.project / folder).mkdir()
    desk.mount(f"bare:project/{folder}")
    [line] = [line for line in _mountinfo() if f" {desk.local} " in line]
    about, _, system = line.partition(" - ")
    assert {"nosuid", "nodev"} <= set(about.split()[5].split(","))
    _, source, options = system.split()
    assert source.startswith(f"lab:{desk.project}/x,allow_other,")
    assert "allow_other" not in options.split(",")


def test_without_sshfs_the_line_to_install_it_is_shown(desk: Desk, tmp_path: Path) -> None:
    jlr = Path(desk.laptop.environment["PATH"].split(":")[0]) / "jlr"
    for name in ("sh", "ssh"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    desk.laptop.environment["PATH"] = str(tmp_path)
    missing = desk.laptop.run(str(jlr), "mount", str(desk.local))
    assert missing.status == 1
    assert "sudo apt install sshfs" in missing.stderr


def test_one_login_serves_commands_and_mounts(desk: Desk, logins: LoginCounter) -> None:
    desk.mount()
    other = desk.local.with_name("other")
    desk.jlr("mount", str(other), "bare:project")
    (other / "x").write_bytes(b"x")
    assert (desk.local / "x").read_bytes() == b"x"
    assert logins() == 1


class WithoutSftp(SSHServer):
    """An SSH server that offers commands only."""

    def configuration(self) -> list[str]:
        return [line for line in super().configuration() if not line.startswith("Subsystem")]


def test_a_host_without_sftp_is_reported(desk: Desk, keys: Keys) -> None:
    with WithoutSftp(keys.authorized) as server:
        desk.laptop.add_host("bald", server, desk.account, key=keys.private)
        remember_session(desk.laptop, "bald", host="bald")
        refusal = desk.jlr("mount", str(desk.local), "bald:/tmp", code=1)
    assert "offers no `sftp` subsystem" in refusal.stderr
    assert not desk.local.exists()
    assert desk.states() == []


def test_only_the_user_can_reach_the_socket_of_the_link(desk: Desk) -> None:
    desk.mount()
    [door] = desk.laptop.folder.rglob("*.sftp")
    assert stat.S_ISSOCK(door.stat().st_mode)
    assert stat.S_IMODE(door.parent.stat().st_mode) == 0o700


def test_an_idle_link_ends_after_its_last_unmount(desk: Desk, laptop: Laptop) -> None:
    laptop.environment["JLR_LINK_IDLE"] = "1"
    desk.mount()
    link = desk.link()
    desk.unmount()
    link.wait(timeout=PATIENCE)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mountinfo() -> list[str]:
    return Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
