"""The scripts about a session's server, run by `sh` on this machine, without Jupyter."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from jlremote.jupyter import launch, scripts
from jlremote.jupyter.discovery import Findings, read_probe
from jlremote.place.host.contract import GROUP
from jlremote.place.runtimes.on_node import OnNode
from jlremote.place.runtimes.processes import Bare
from jlremote.sessions import logs
from tests.lab.programs import load, start_time, wait_until, write_program
from tests.outages.parts import within

BARE = Bare()
OWN = "cont1-dgx.localhost"
NAME = "cont1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the session's folder, in a state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "jlr" / "servers" / os.uname().nodename / NAME
    (folder / "runtime").mkdir(parents=True)
    return folder


def sh(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh"], input=script, capture_output=True, text=True, timeout=60)


def found() -> Findings:
    return read_probe(sh(scripts.probe(BARE, NAME)).stdout)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def write_server(folder: Path, listener: socket.socket, pid: int) -> None:
    """Write the runtime file of a server that this process plays."""
    facts = {"port": listener.getsockname()[1], "base_url": f"/{NAME}/", "token": "secret"}
    (folder / "runtime" / f"jpserver-{pid}.json").write_text(json.dumps(facts))


def launching(id_: str, **how: Any) -> str:
    """Return the script of a launch."""
    return launch.Launch(BARE, NAME, id_, OWN, **how).script()


@pytest.fixture
def on_socket(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Write the runtime file of a server on a unix socket, which is bound and does not listen.

    pytest's folders are too long for a socket's path.
    """
    with TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as bound:
        monkeypatch.setenv("XDG_STATE_HOME", short)
        runtime = Path(short) / "jlr" / "servers" / os.uname().nodename / NAME / "runtime"
        runtime.mkdir(parents=True)
        path = runtime / f"{scripts.SOCKET}mine"
        bound.bind(str(path))
        facts = {"port": 0, "base_url": f"/{NAME}/", "token": "secret", "sock": str(path)}
        (runtime / f"jpserver-{os.getpid()}.json").write_text(json.dumps(facts, indent=2))
        yield bound


def test_a_server_on_the_sessions_socket_is_found_and_awaited(on_socket: socket.socket) -> None:
    assert found().servers == ()
    (Path(on_socket.getsockname()).parents[1] / "launch").write_text("mine\n")
    waiting = subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert waiting.stdin is not None
    waiting.stdin.write(launch.wait_and_probe(BARE, NAME, "mine"))
    waiting.stdin.close()
    on_socket.listen()
    assert waiting.stdout is not None
    with waiting:
        [server] = read_probe(waiting.stdout.read()).servers
    assert server == found().servers[0]
    assert (server.port, server.sock) == (0, on_socket.getsockname())


def test_every_session_of_the_host_is_probed(folder: Path, listener: socket.socket) -> None:
    write_server(folder, listener, os.getpid())
    (folder.parent / "cont2" / "runtime").mkdir(parents=True)
    *groups, rest = sh(scripts.own_servers(Bare())).stdout.split(GROUP)
    assert rest == ""
    names = [Path(read_probe(group).directory).name for group in groups]
    assert names == ["cont1", "cont2"]
    assert [len(read_probe(group).servers) for group in groups] == [1, 0]


def test_a_server_that_does_not_end_is_asked_to(folder: Path) -> None:
    server = subprocess.Popen(["sleep", "60"])
    try:
        done = sh(scripts.end(BARE, NAME, server.pid, start_time(server.pid), patience=0))
    finally:
        server.kill()
    assert done.returncode == 0
    assert done.stdout == "asked\n"
    assert server.wait() == -signal.SIGTERM
    assert (folder / "ended").read_text() == "stopped\n"
    assert [path.name for path in folder.iterdir()] == ["ended"]


def test_another_process_with_the_pid_is_left_alone(folder: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        earlier = str(int(start_time(other.pid)) - 1)
        done = sh(scripts.end(BARE, NAME, other.pid, earlier, patience=0))
        assert (done.returncode, done.stdout) == (0, "")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_launch_is_abandoned_before_its_server_starts(folder: Path) -> None:
    (folder / "launch").write_text("mine\n")
    sh(launch.abandon(BARE, NAME, "mine"))
    assert (folder / "abandoned-mine").exists()
    assert not (folder / "runtime").exists()


def test_the_folder_is_removed_once_its_server_has_ended(folder: Path) -> None:
    (folder / "pid").write_text("1\n")
    (folder / "exit").write_text("0\n")
    sh(scripts.clear(BARE, NAME))
    assert not folder.exists()


def test_the_folder_of_a_jobs_server_is_removed_and_no_process_is_killed(tmp_path: Path) -> None:
    """The pid in it is that of a process of the node, and here of another one."""
    folder = tmp_path / NAME
    folder.mkdir()
    with subprocess.Popen(["sleep", "60"]) as other:
        (folder / "pid").write_text(f"{other.pid}\n")
        began = time.monotonic()
        sh(scripts.clear(OnNode(BARE, servers_folder=str(tmp_path)), NAME))
        assert not folder.exists()
        assert other.poll() is None
        # A job's shell writes no exit code when it is cancelled.
        assert time.monotonic() - began < 5 * load()
        other.kill()


def test_the_log_is_cut_at_a_moment_by_the_servers_clock(folder: Path) -> None:
    now = datetime.now()
    old, new = (f"[I {now - timedelta(hours=hours)} ServerApp] {hours} h\n" for hours in (3, 1))
    (folder / "jupyter.log").write_text(f"{old}of old\n{new}of new\n{old}")
    told = sh(scripts.show_log(BARE, NAME, lines=None, since=-7200)).stdout
    assert "".join(logs._later((told[:60], told[60:]))) == f"{new}of new\n{old}"
    told = sh(scripts.show_log(BARE, NAME, lines=None, since=4102444800)).stdout
    assert "".join(logs._later([told])) == ""
    assert "".join(logs._later(["the engine's\n", "own"])) == "the engine's\nown"


def fake_jupyter(tmp_path: Path, script: str) -> str:
    """Return shell text that runs a program in Jupyter's place."""
    program = tmp_path / "jupyter-lab"
    write_program(program, f"#!/bin/sh\n{script}\n")
    return f"set -- {program}\n"


def test_a_launch_writes_the_configuration_and_the_exit_status(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "exit").write_text("1\n")
    secret = folder / "runtime" / "jupyter_cookie_secret"
    secret.write_text("known to others")
    jupyter = fake_jupyter(tmp_path, 'echo "$@"; echo "$JUPYTER_CONFIG_PATH"; exit 3')
    text = launching("mine", jupyter=jupyter, idle_stop=3600)
    assert sh(text).returncode == 0
    assert (folder / "exit").read_text() == "3\n"
    assert not secret.exists()
    assert (folder / "launch").read_text() == "mine\n"
    assert (folder / "idle-stop").read_text() == "3600\n"
    options, path = (folder / "jupyter.log").read_text().splitlines()
    assert options.startswith("--no-browser --ip=127.0.0.1 --port=8988")
    assert path.split(":")[0] == str(folder / "config")
    assert {file.name for file in (folder / "config").iterdir()} == {
        *("jupyter_server_config.py", "jupyter_notebook_config.py", "jlr_recorder.py"),
        *("jlr_pages.py", "jlr_resumption.py", "jlr_newer.py", "jlr_reloads.py"),
    }


def test_the_name_of_a_user_of_a_domain_is_kept_letter_by_letter(
    folder: Path, tmp_path: Path
) -> None:
    user, jupyter = "CORP\\a.smith", fake_jupyter(tmp_path, "exit 0")
    text = launching("mine", jupyter=jupyter, user=user)
    assert sh(text).returncode == 0
    assert found().launcher == user
    noted = scripts.LAUNCHER.search(text)
    assert noted is not None
    assert noted[1].strip("'") == user


@pytest.mark.lab
@pytest.mark.parametrize(
    ("here", "jupyter", "opened"),
    [
        ("/", "", "good"),
        ("stuck", "", "stuck"),  # a place as good as any, for root
        ("/", "python=/usr/bin/python3\n", "good"),
        ("/", "python=env/bin/python\n", "/"),
    ],
)
def test_jupyter_opens_in_a_folder_of_the_persons_rather_than_in_the_root(
    here: str, jupyter: str, opened: str, folder: Path, tmp_path: Path
) -> None:
    for name, mode in (("stuck", 0o1777), ("good", 0o700), ("late", 0o700)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    folders = [str(tmp_path / name) for name in ("absent", "stuck", "good", "late")]
    jupyter += fake_jupyter(tmp_path, "pwd")
    text = launching("mine", jupyter=jupyter, folders=folders)
    assert sh(f"cd {tmp_path / here}\n{text}").returncode == 0
    assert (folder / "jupyter.log").read_text() == f"{tmp_path / opened}\n"


@within(5)
def test_nothing_is_launched_without_its_whole_configuration(folder: Path, tmp_path: Path) -> None:
    jupyter = fake_jupyter(tmp_path, f"touch {tmp_path}/launched")
    # The first bytes still fit on the disk.
    full = "cat() { head -c 99; return 1; }\n"
    done = sh(full + launching("mine", jupyter=jupyter))
    assert done.returncode == 1
    assert not (tmp_path / "launched").exists()
    assert not (folder / "launch").exists()


def begin(text: str) -> subprocess.Popen[str]:
    """Run a script in the background, in the manner of a second start."""
    return subprocess.Popen(["sh", "-c", text], text=True)


@pytest.mark.lab
def test_of_launches_at_the_same_moment_one_starts_a_server(folder: Path, tmp_path: Path) -> None:
    """Each other one says that it waits for that server, which then stays at a failure."""
    until = tmp_path / "over"
    jupyter = fake_jupyter(
        tmp_path, f"echo x >>{tmp_path}/began; while [ ! -e {until} ]; do sleep 0.05; done"
    )
    for round_ in range(4):
        names = [f"{round_}-{number}" for number in range(4)]
        began = [begin(launching(n, jupyter=jupyter)) for n in names]
        wait_until(lambda: sum(one.poll() is not None for one in began) == 3, "the three others")  # noqa: B023
        [winner] = [n for n, one in zip(names, began, strict=True) if one.poll() is None]
        joined = {path.name for path in folder.glob(f"joined-{round_}-*")}
        assert joined == {f"joined-{name}" for name in names if name != winner}
        assert (folder / f"shared-{winner}").exists()
        wait_until((folder / f"pid-{winner}").exists, "the server")
        assert sh(launch.abandon(BARE, NAME, winner)).returncode == 0
        assert (folder / f"pid-{winner}").exists()
        until.touch()
        assert all(one.wait(timeout=30) == 0 for one in began)
        until.unlink()
    assert (tmp_path / "began").read_text() == "x\n" * 4


def test_a_lock_whose_shell_was_killed_counts_no_more(folder: Path, tmp_path: Path) -> None:
    jupyter = fake_jupyter(tmp_path, "exec sleep 0.5")
    first = begin(launching("first", jupyter=jupyter))
    wait_until((folder / "pid-first").exists, "the first server")
    first.kill()
    first.wait()
    other = fake_jupyter(tmp_path, f"touch {tmp_path}/second")
    assert sh(launching("second", jupyter=other)).returncode == 0
    assert (tmp_path / "second").exists()


def test_a_launch_that_joins_a_server_holds_no_lock_until_its_shell_has_ended(
    folder: Path, tmp_path: Path
) -> None:
    over = tmp_path / "over"
    lives_on = f"trap 'while [ ! -e {over} ]; do sleep 0.05; done' EXIT\n"
    joins = launching("first").replace("elif is_starting", "elif :")
    first = begin(lives_on + joins)
    wait_until((folder / "joined-first").exists, "the other server")
    jupyter = fake_jupyter(tmp_path, "exit 3")
    sh(launching("second", jupyter=jupyter, join=False))
    assert (folder / "exit").read_text() == "3\n"
    over.touch()
    assert first.wait(timeout=30) == 0


def test_a_launch_that_waits_for_a_server_which_ends_says_so(folder: Path) -> None:
    (folder / "joined-mine").touch()
    assert sh(launch.wait_and_probe(BARE, NAME, "mine")).returncode == launch.OTHER_ENDED
    assert not (folder / "joined-mine").exists()
