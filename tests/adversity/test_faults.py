"""Faults under one session, one after another: it goes on in time, and its kernel never notices.

Each test breaks one part, checks within a bound what commands say of it, mends the part, and sees
that the same kernel still has its variable and that `jlr list` tells the truth.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from jlremote.link.connection.backoff import STEADY_SECONDS
from tests.lab.accounts import Account, cmdline
from tests.lab.containers import Container, ContainerFactory
from tests.lab.disks import disk, fill
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.programs import PATIENCE, Result, wait_until
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.lab.sshd import SSHServer
from tests.link.desk import is_link
from tests.long import LONG, WANTED
from tests.outages.conftest import QUICK
from tests.outages.parts import Work, within, work_in
from tests.sessions.parts import START_SECONDS, failed, start, started

HOST = "far"
BACK = 4.0  # two seconds, and as much again where the tests share two cores
# What a command may take that only looks: it is told, whatever has happened.
TOLD = 15.0
# `time.time` goes by the number of seconds in a file.
CLOCK = """
import time
from pathlib import Path
real, offset = time.time, Path({path!r})
time.time = lambda: real() + float(offset.read_text())
"""


@dataclass(frozen=True)
class Scene:
    """A session, and the parts of it that can break."""

    work: Work
    laptop: Laptop
    container: Container
    account: Account
    line: Line
    sshd: SSHServer
    engine_socket: Path  # a link to dockerd's socket, which is where the host's user has it
    authorized: Path  # the keys that the host accepts
    clock: Path  # holds the seconds by which the laptop's clock is wrong

    @property
    def link(self) -> psutil.Process:
        [found] = [process for process in self.laptop.processes() if is_link(process)]
        return found

    @property
    def record(self) -> Path:
        folder = Path(self.laptop.environment["XDG_STATE_HOME"]) / "jlr" / "sessions"
        return folder / f"{HOST}+{self.container.name}.json"

    def cut(self) -> None:
        self.before_a_loss()
        self.line.cut()

    def before_a_loss(self) -> None:
        """Wait: the loss of a connection that did not last may rightly be followed by a pause."""
        time.sleep(STEADY_SECONDS)

    def told(self) -> dict[str, Any]:
        with within(TOLD):
            listed = self.laptop.jlr("list", "--json")
        assert listed.status == 0, listed
        [report] = json.loads(listed.stdout)
        assert isinstance(report, dict)
        return report

    def tells(self, state: str, *words: str) -> None:
        """Check that `jlr list` says that state in time, with these words."""
        limit = time.monotonic() + TOLD
        while (report := self.told())["state"] != state:
            assert time.monotonic() < limit, report
        for word in words:
            assert word in report["detail"], report

    def goes_on(self, limit: float = BACK) -> None:
        """Check that the page is back in `limit` seconds, and that nothing is lost."""
        self.work.comes_back(limit)
        report = self.told()
        assert (report["state"], report["local_port"]) == ("up", self.work.session.port), report

    def is_told_and_goes_on(
        self, fault: AbstractContextManager[None], state: str, *words: str
    ) -> None:
        """Check that a fault at the loss of the connection is told, and mended by the next look.

        By itself the link tries ever more rarely.
        """
        with fault:
            self.cut()
            self.tells(state, *words)
        self.laptop.jlr("list", self.work.session.name).checked()
        self.goes_on()

    def signal(self, name: str, pid: str) -> None:
        """Send a signal to a process of the container; `pid` may be a shell's expression."""
        self.container.execute("sh", "-c", f"kill -{name} {pid}")

    def restart(self) -> Result:
        """Run `jlr start` once more, which finds the session."""
        with within(TOLD):
            port = str(self.work.session.port)
            return start(self.laptop, HOST, self.container.name, "--port", port)


@pytest.fixture(scope="module")
def scene(
    engine: Engine, account: Account, keys: Keys, containers: ContainerFactory
) -> Iterator[Scene]:
    home = account.home / "faults"
    home.mkdir()
    authorized, socket_link = home / "authorized", home / "docker.sock"
    shutil.copy(keys.authorized, authorized)
    socket_link.symlink_to(engine.socket)
    accepted = Keys(keys.private, authorized)
    environment = {"DOCKER_HOST": f"unix://{socket_link}"}
    with ExitStack() as stack:
        sshd = stack.enter_context(running_sshd(engine, accepted, environment=environment))
        line = Line(sshd.port)
        stack.callback(line.close)
        laptop = stack.enter_context(new_laptop(sshd, account, keys))
        key = laptop.folder / "key"
        shutil.copy(keys.private, key)
        laptop.add_host(HOST, sshd, account, key=key, port=line.port, options=QUICK)
        clock = wrong_clock(laptop)
        here = containers(options=("--tmpfs", "/tmp:size=64m,exec,mode=1777"))
        session = started(laptop, here, host=HOST)
        work = stack.enter_context(work_in(session))
        yield Scene(work, laptop, here, account, line, sshd, socket_link, authorized, clock)


def wrong_clock(laptop: Laptop) -> Path:
    """Let the laptop's programs go by a clock that a test can set."""
    folder = laptop.folder / "clock"
    folder.mkdir()
    offset = folder / "offset"
    offset.write_text("0")
    (folder / "sitecustomize.py").write_text(CLOCK.format(path=str(offset)))
    laptop.environment["PYTHONPATH"] = str(folder)
    return offset


@contextmanager
def aside(path: Path) -> Iterator[None]:
    """Let a file or folder be missing for a while."""
    hidden = path.with_name(f"{path.name}.aside")
    path.rename(hidden)
    try:
        yield
    finally:
        if path.is_dir():
            shutil.rmtree(path)
        hidden.replace(path)


@contextmanager
def text_in(path: Path, text: str) -> Iterator[None]:
    """Let a file hold something else for a while."""
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


# Of a test; a session that was lost would cost each further one half a minute.
pytestmark = pytest.mark.timeout(60, func_only=True)  # the first test also makes the scene

# The connection


def test_a_silence_shorter_than_the_settings_allow_costs_no_connection(scene: Scene) -> None:
    made = scene.line.connections
    scene.line.stall()
    time.sleep(1)
    scene.line.resume()
    scene.goes_on()
    assert scene.line.connections == made


def test_a_line_that_becomes_slow_costs_no_connection(scene: Scene) -> None:
    made = scene.line.connections
    scene.line.delay = 0.25  # there and back 0.5 s
    try:
        scene.goes_on(8)
    finally:
        scene.line.delay = 0
    assert scene.line.connections == made


def test_a_cell_that_runs_while_the_connection_is_cut_runs_to_its_end(scene: Scene) -> None:
    with scene.work.kernel.reached_anew() as kernel:
        kernel.run("ran = 0")
        kernel.send("import time; time.sleep(1); ran = 1")
        wait_until(lambda: kernel.state() == "busy", "the start of the cell")
        scene.cut()
    scene.goes_on()
    with scene.work.kernel.reached_anew() as kernel:
        assert kernel.run("ran") == "1"


def test_a_host_whose_name_is_not_found_is_told_and_found_again(scene: Scene) -> None:
    config = scene.laptop.ssh_config.read_text()
    with text_in(scene.laptop.ssh_config, config.replace("127.0.0.1", "gone.invalid")):
        scene.cut()
        scene.tells("reconnecting", "gone.invalid")
    scene.goes_on()


def test_an_ssh_configuration_with_a_mistake_is_told_and_read_again(scene: Scene) -> None:
    mistake = text_in(scene.laptop.ssh_config, "Host far\n    NoSuchOption 1\n")
    scene.is_told_and_goes_on(mistake, "reconnecting", "nosuchoption")


def test_without_known_hosts_nothing_is_offered_and_with_it_the_session_is_back(
    scene: Scene,
) -> None:
    scene.is_told_and_goes_on(aside(scene.laptop.known_hosts), "needs-auth", "key")


def test_a_key_that_is_missing_is_told_and_used_once_it_is_back(scene: Scene) -> None:
    scene.is_told_and_goes_on(aside(scene.laptop.folder / "key"), "needs-auth")


def test_a_key_that_the_host_no_longer_accepts_is_told_and_used_once_it_does(scene: Scene) -> None:
    scene.is_told_and_goes_on(text_in(scene.authorized, ""), "needs-auth")


def test_all_of_the_users_processes_on_the_host_are_killed(scene: Scene) -> None:
    """As an administrator does, or systemd at the end of a session there."""
    scene.before_a_loss()
    scene.account.end_processes()
    scene.goes_on()


# The link and the laptop


def test_a_link_that_is_told_to_end_is_started_by_the_next_command(scene: Scene) -> None:
    link = scene.link
    link.terminate()
    link.wait(PATIENCE)
    assert scene.told()["state"] == "up"
    scene.goes_on()


def test_a_link_that_is_killed_again_and_again_is_started_again_each_time(scene: Scene) -> None:
    for _ in range(2):
        scene.link.kill()
        assert scene.told()["state"] == "up"
    scene.goes_on()


@pytest.mark.parametrize(
    "words", [("open", "--no-browser"), LONG(("list", "lab/one")), LONG(("logs",))]
)
def test_commands_that_are_killed_at_any_moment_take_nothing_with_them(
    scene: Scene, words: tuple[str, ...]
) -> None:
    for _ in range(3 if WANTED else 1):
        with scene.laptop.spawn(*words) as command:
            time.sleep(random.uniform(0, 0.6))
            command.kill()
    scene.goes_on()


def test_a_terminal_that_is_closed_takes_nothing_with_it(scene: Scene) -> None:
    with scene.laptop.terminal("jlr", "list", "--watch") as terminal:
        terminal.expect_exact(scene.container.name)
        terminal.kill(signal.SIGHUP)
        with within(TOLD):
            terminal.wait()
    scene.goes_on()


def test_two_starts_at_the_same_time_lead_to_one_server(scene: Scene) -> None:
    words = ("start", HOST, scene.container.name, "--no-browser", "--json")
    with within(TOLD * 2):
        starting = [scene.laptop.spawn(*words) for _ in range(2)]
        said = [command.communicate(timeout=START_SECONDS)[0] for command in starting]
    assert [command.returncode for command in starting] == [0, 0], said
    assert all(f":{scene.work.session.port}/" in text for text in said), said
    scene.goes_on()


def test_a_record_that_was_deleted_is_written_anew_by_start(scene: Scene) -> None:
    scene.record.unlink()
    assert scene.restart().status == 0
    scene.goes_on()


def test_a_state_folder_that_was_deleted_is_made_anew_by_start(scene: Scene) -> None:
    shutil.rmtree(scene.record.parents[1])
    assert scene.restart().status == 0
    scene.goes_on()


def test_a_record_that_cannot_be_read_is_named_and_the_page_goes_on(scene: Scene) -> None:
    with aside(scene.record):
        scene.record.mkdir()
        with within(TOLD):
            listed = scene.laptop.jlr("list")
        assert scene.record.name in listed.stderr, listed
        scene.work.comes_back(BACK)
    scene.goes_on()


def test_settings_with_a_mistake_are_named_and_the_page_goes_on(scene: Scene) -> None:
    settings = scene.laptop.settle("port = = 1\n")
    try:
        failed(scene.restart(), 2, "config.toml")
        scene.work.comes_back(BACK)
    finally:
        settings.unlink()
    scene.goes_on()


@pytest.mark.parametrize("seconds", [LONG(86_400), -86_400])
def test_a_clock_that_jumps_costs_no_connection(scene: Scene, seconds: int) -> None:
    made = scene.line.connections
    with text_in(scene.clock, str(seconds)):
        scene.goes_on()
        time.sleep(1)
        scene.goes_on()
    assert scene.line.connections == made


@pytest.mark.parametrize("browser", [LONG("exit 1"), LONG("kill -9 $$"), "exec sleep 20"])
def test_a_browser_that_fails_or_hangs_holds_up_nothing(scene: Scene, browser: str) -> None:
    with (
        text_in(Path(scene.laptop.environment["BROWSER"]), f"#!/bin/sh\n{browser}\n"),
        within(TOLD),
    ):
        opened = scene.laptop.jlr("open")
    assert f":{scene.work.session.port}/" in opened.stdout + opened.stderr, opened
    scene.goes_on()


def test_callers_that_say_nothing_hold_up_no_page(scene: Scene) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            address = ("127.0.0.1", scene.work.session.port)
            stack.enter_context(socket.create_connection(address, 10))
        scene.goes_on()


# The host


def test_without_dockerd_the_page_goes_on_and_a_start_says_why_it_cannot(scene: Scene) -> None:
    with aside(scene.engine_socket):
        scene.work.comes_back(BACK)
        failed(scene.restart(), 1, "docker", "does not run")
    scene.goes_on()


def test_a_dockerd_that_hangs_is_told_in_time_and_the_page_goes_on(scene: Scene) -> None:
    with aside(scene.engine_socket), socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(scene.engine_socket))
        scene.engine_socket.chmod(0o666)
        mute.listen()
        scene.work.comes_back(BACK)
        assert scene.told()["state"] == "up"
    scene.goes_on()


def test_a_client_that_reads_dockers_events_is_killed(scene: Scene) -> None:
    wait_until(lambda: readers_of_events(scene.account), "its start")
    for process in readers_of_events(scene.account):
        process.kill()
    wait_until(lambda: readers_of_events(scene.account), "its return", timeout=TOLD)
    scene.goes_on()


def readers_of_events(account: Account) -> list[psutil.Process]:
    """Return the user's clients of docker that read events."""
    found = account.processes()
    return [each for each in found if cmdline(each)[:2] == ["docker", "events"]]


def test_a_container_that_is_paused_is_told_and_goes_on(scene: Scene) -> None:
    engine, name = scene.container.engine, scene.container.name
    engine.pause(name)
    try:
        scene.tells("paused", "is paused")
    finally:
        engine.docker("unpause", name)
    scene.goes_on()


def test_a_server_that_stops_answering_is_told_and_goes_on(scene: Scene) -> None:
    pid = f"$(cat /tmp/jlr-0/{scene.container.name}/pid)"
    scene.signal("STOP", pid)
    try:
        assert scene.told()["state"] == "down"
    finally:
        scene.signal("CONT", pid)
    scene.goes_on()


def test_a_kernel_that_is_killed_is_started_again_and_no_other_notices(scene: Scene) -> None:
    with scene.work.session.notebook("killed.ipynb") as kernel:
        pid = kernel.run("import os; os.getpid()")
        scene.signal("KILL", pid)
        with within(TOLD):
            wait_until(lambda: kernel.state() in ("restarting", "idle"), "its restart")
        scene.work.check()
    scene.goes_on()


def test_a_kernel_that_is_frozen_holds_up_no_other(scene: Scene) -> None:
    with scene.work.session.notebook("frozen.ipynb") as kernel:
        pid = kernel.run("import os; os.getpid()")
        scene.signal("STOP", pid)
        scene.goes_on()
        scene.signal("CONT", pid)


def test_a_full_disk_in_the_container_costs_no_running_session(scene: Scene) -> None:
    scene.container.execute("sh", "-c", "cat /dev/zero >/tmp/full 2>/dev/null; :")
    try:
        assert scene.restart().status == 0
        scene.goes_on()
    finally:
        scene.container.execute("rm", "/tmp/full")


@pytest.mark.parametrize("trouble", ["full", LONG("read-only")])
def test_a_home_on_the_host_where_nothing_can_be_written_costs_no_session(
    scene: Scene, trouble: str
) -> None:
    state = scene.account.home / ".local"
    state.mkdir(exist_ok=True)
    shutil.chown(state, scene.account.name)  # later tests of this run log in as it, too
    with disk(state, *(["ro"] if trouble == "read-only" else [])):
        if trouble == "full":
            fill(state)
        scene.cut()
        scene.goes_on()
        assert scene.restart().status == 0


def test_a_host_without_its_engines_program_is_told_and_the_page_goes_on(scene: Scene) -> None:
    """As in the middle of an upgrade."""
    with aside(scene.engine_socket):
        scene.cut()
        scene.tells("down", "docker")
    scene.goes_on(BACK + 2)
