"""A mount can be removed in every state, and the programs that hold it are named."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pexpect import EOF

from tests.lab.line import Line
from tests.lab.programs import PATIENCE, load
from tests.mounts.parts import Desk, attempt, own, until, works
from tests.outages.parts import within


@contextmanager
def a_shell_in(desk: Desk) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that works in the mount."""
    with subprocess.Popen(("sleep", "300"), cwd=desk.local) as shell:
        until(lambda: Path(f"/proc/{shell.pid}/cwd").readlink() == desk.local, "its start")
        yield shell
        shell.kill()


def test_a_busy_mount_stays_and_its_user_is_named(desk: Desk) -> None:
    desk.mount()
    with a_shell_in(desk) as shell:
        refusal = desk.unmount(code=7)
        assert f"sleep (process {shell.pid}) works in it" in refusal.stderr
        assert "--force" in refusal.stderr
        assert desk.is_mounted()
        assert works(desk.local)
    desk.unmount()
    assert not desk.is_mounted()


def test_an_open_file_and_a_running_program_are_users_too(desk: Desk) -> None:
    desk.mount()
    (desk.local / "log").write_bytes(b"x")
    (desk.local / "sleep").write_bytes(Path("/usr/bin/sleep").read_bytes())
    (desk.local / "sleep").chmod(0o755)
    tail = ("tail", "-f", str(desk.local / "log"))
    with (
        subprocess.Popen(tail, stdout=subprocess.DEVNULL) as reader,
        subprocess.Popen((str(desk.local / "sleep"), "300")) as runner,
    ):
        until(lambda: "place/log" in _files(reader.pid), "its reading")
        refusal = desk.unmount(code=7).stderr
        assert f"tail (process {reader.pid}) has a file open in it" in refusal
        assert f"sleep (process {runner.pid}) runs from it" in refusal
        reader.kill()
        runner.kill()


def test_a_forced_stop_names_who_loses_a_folder_of_the_session(desk: Desk) -> None:
    desk.mount()
    with a_shell_in(desk) as shell:
        who = f"sleep (process {shell.pid}) works in it"
        kept = desk.jlr("stop", "lab/bare")
        assert f"left it mounted: `{desk.local}` is in use: {who}" in " ".join(kept.stdout.split())
        assert works(desk.local)
        with desk.laptop.terminal("jlr", "stop", "lab/bare", "--force") as screen:
            screen.expect(rf"the mount \S+place: sleep \(process {shell.pid}\)\s+works\s+in\s+it")
            screen.expect("Stop lab/bare\\? \\(y/N\\) ")
            screen.send("n\r")
            screen.expect("nothing was changed")
            screen.expect(EOF)
        assert works(desk.local)
        done = desk.jlr("stop", "lab/bare", "--force", "--yes")
        told = f"unmounted {desk.local} although it is in use: {who}"
        assert told in " ".join(done.stdout.split())
        assert (desk.is_mounted(), desk.sshfs(), desk.states()) == (False, [], [])
        assert shell.poll() is None, "it keeps its place, which is no folder any more"
        with pytest.raises(OSError, match="not connected"):
            list(Path(f"/proc/{shell.pid}/cwd").iterdir())
    again = desk.jlr("stop", "lab/bare", "--force", "--yes")
    assert "mounted" not in again.stdout


def test_a_mount_whose_sshfs_was_killed_is_dead_and_can_be_taken_away(desk: Desk) -> None:
    desk.mount()
    [sshfs] = desk.sshfs()
    sshfs.kill()
    sshfs.wait(PATIENCE)
    assert attempt("ls", str(desk.local)).seconds < 5 * load()
    assert desk.states() == ["dead"]
    desk.unmount()
    assert not desk.is_mounted()
    assert not desk.local.exists()


def test_a_mount_whose_sshfs_was_killed_is_mounted_again_by_its_name_alone(desk: Desk) -> None:
    (desk.project / "x").write_bytes(b"x")
    own(desk.account, desk.project)
    desk.mount("bare:project", "--read-only")
    with within(15):
        desk.sshfs()[0].kill()
        until(lambda: desk.sshfs() == [], "its end")
        desk.jlr("mount", str(desk.local))
        assert (desk.local / "x").read_bytes() == b"x"
    with pytest.raises(OSError, match="Read-only"):
        (desk.local / "x").unlink()
    assert desk.states() == ["up"]


def test_a_mount_that_hangs_hangs_none_of_our_commands(desk: Desk) -> None:
    """A stopped sshfs does not answer: even a look at the mount waits."""
    desk.mount()
    [sshfs] = desk.sshfs()
    sshfs.send_signal(signal.SIGSTOP)
    looker = subprocess.Popen(("ls", str(desk.local)), stdout=subprocess.DEVNULL)
    try:
        assert desk.jlr("mount", timeout=PATIENCE)
        assert desk.jlr("list", timeout=PATIENCE)
        assert "already" in desk.jlr("mount", str(desk.local), timeout=PATIENCE).stderr
        assert (
            "in the mount" in desk.jlr("mount", f"{desk.local}/x", code=2, timeout=PATIENCE).stderr
        )
        desk.unmount("--force", "--yes")
        assert looker.wait(PATIENCE) != 0
    finally:
        looker.kill()
        looker.wait()
    assert not desk.is_mounted()


def test_a_mount_is_taken_away_while_its_host_is(far_desk: Desk, line: Line) -> None:
    far_desk.mount()
    line.stall()
    far_desk.unmount()
    assert not far_desk.is_mounted()
    assert far_desk.sshfs() == []


def test_all_mounts_go_at_once_after_a_yes(desk: Desk) -> None:
    other = desk.local.with_name("other")
    desk.mount()
    for answer, end in (("n", "nothing was changed"), ("y", f"unmounted {desk.local}")):
        with desk.laptop.terminal("jlr", "mount", "--unmount", "--all") as screen:
            screen.expect_exact(f"the mount {desk.local} of lab")
            screen.expect_exact("Unmount all of them? (y/N) ")
            screen.send(f"{answer}\r")
            screen.expect(end)
            screen.expect(EOF)
        assert desk.is_mounted() == (answer == "n")
    desk.mount()
    desk.jlr("mount", str(other), "bare:project")
    done = desk.jlr("mount", "--unmount", "--all", "--yes").stdout
    assert done == f"unmounted {other}\nunmounted {desk.local}\n"
    assert not desk.is_mounted()
    assert not desk.is_mounted(other)
    assert "nothing mounted" in desk.unmount(code=6).stderr


def _files(pid: int) -> str:
    return " ".join(str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir())
