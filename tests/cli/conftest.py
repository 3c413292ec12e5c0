"""A laptop of its own for each test, and workflows that refuse what no test has announced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Protocol

import pytest

from jlremote.cli import boundary
from jlremote.forwards.address import Address
from jlremote.jupyter.api import Kernel
from jlremote.laptop import paths, sessions
from jlremote.laptop.typed_place import LEASH
from jlremote.listing.session_report import SessionReport

WORKFLOWS = """
    hosts.links.begin sessions.start.start sessions.start.plan sessions.open.address
    sessions.logs.log sessions.stop.stop sessions.stop.stop_all sessions.shell.shell
    sessions.restart.restart sessions.restart.renew
    sessions.further_ports.add sessions.further_ports.listed sessions.further_ports.remove
    listing.listing.reports listing.listing.report selection.destruction.disconnect
    output.reading.recorded output.reading.followed output.notebook_copy.save
    kernels.execution.execute
    jobs.known_jobs.listed jobs.known_jobs.clean jobs.known_jobs.find
    jobs.known_jobs.remove jobs.known_jobs.stop jobs.begin.run
    jobs.follow.follow jobs.begin_scheduled.estimate
    mounts.mount.mount mounts.known_mounts.reports mounts.known_mounts.unmount
    mounts.known_mounts.unmount_all
    images.save.images images.save.save images.build.build
    images.pull.pull images.pull.push images.removal.remove
    images.removal.prune images.login.log_in images.login.log_out
    gpus.host_gpus.inventory gpus.host_gpus.watch gpus.host_gpus.watch_pool
    hosts.links.forget doctor.doctor.doctor demo.demo.demo forwards.browser.open_in_browser
"""

BASE, TOKEN = "http://127.0.0.1:8888/cont1/", "5ec2e7"
URL = f"{BASE}lab?token={TOKEN}"
PAGE = "http://cont1-dgx.localhost:8888/cont1/lab?token=5ec2e7"
ADDRESS = Address(URL, PAGE)
REPORT = SessionReport(
    name="cont1",
    host="dgx",
    container="cont1",
    runtime="docker",
    state="up",
    url=URL,
    page=PAGE,
    local_port=8888,
    image="nvcr.io/nvidia/pytorch:24.05-py3",
    gpus="all",
    kernels=(Kernel("work/train.ipynb", "busy", "2026-01-02T03:04:05Z"),),
)

# The rooms with stories that the commands call.
ROOMS = "copies demo doctor editors forwards gpus hosts images jobs listing mounts output sessions"


@pytest.fixture(autouse=True)
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home of its own, without settings, sessions or a display."""
    for name in [name for name in os.environ if name.startswith(("JLR_", "XDG_"))]:
        monkeypatch.delenv(name)
    screen = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "NO_COLOR", "FORCE_COLOR")
    for name in (*screen, "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    for name in ("state", "config", "cache", "data"):
        variable = f"XDG_{name.upper()}_HOME"
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    return tmp_path


@dataclass
class Workflows:
    """What the commands call; a call that no test has announced fails."""

    patch: pytest.MonkeyPatch
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def will(self, name: str, answer: Any) -> None:
        """Announce a call: it returns `answer`, raises it, or calls it with the arguments."""
        self.take_over(name)
        self.answers[name] = answer

    def take_over(self, name: str) -> None:
        """Stand in for the function `name` of a workflow."""
        module, _, function = name.rpartition(".")
        stand_in = partial(self._call, name)
        self.patch.setattr(import_module(f"jlremote.{module}"), function, stand_in)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        self.calls.append((name, arguments, options))
        if name not in self.answers:
            raise AssertionError(f"nobody expected a call of {name}{arguments}")
        answer = self.answers[name]
        if isinstance(answer, BaseException):
            raise answer
        return answer(*arguments, **options) if callable(answer) else answer

    def arguments(self, name: str) -> tuple[Any, ...]:
        """Return the arguments of the only call of `name`."""
        [arguments] = [arguments for called, arguments, _ in self.calls if called == name]
        return arguments


@pytest.fixture(scope="session")
def _all_loaded() -> None:
    """Load every workflow: one that a test loads first would keep its stand-ins for good."""
    for room in map(import_module, (f"jlremote.{room}" for room in ROOMS.split())):
        for module in walk_packages(room.__path__, f"{room.__name__}."):
            import_module(module.name)


@pytest.fixture
def workflows(_all_loaded: None, monkeypatch: pytest.MonkeyPatch) -> Workflows:
    fakes = Workflows(monkeypatch)
    for name in WORKFLOWS.split():
        fakes.take_over(name)
    fakes.will("hosts.links.begin", None)  # only for speed, so no test announces it
    return fakes


@dataclass(frozen=True)
class Outcome:
    code: int
    stdout: str
    stderr: str


class Jlr(Protocol):
    def __call__(self, *argv: str) -> Outcome: ...


@pytest.fixture
def jlr(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Jlr]:
    """Run the whole command line in this process, where workflows can be faked."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def call(*argv: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["jlr", *argv])
        capfd.readouterr()
        with monkeypatch.context() as kept:  # `--leash` and `jlr mcp` set it for the process
            leashed = LEASH in os.environ
            kept.setenv(LEASH, os.environ.get(LEASH, ""))
            if not leashed:
                kept.delenv(LEASH)
            code = boundary.run()
        printed = capfd.readouterr()
        return Outcome(code, printed.out, printed.err)

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def process() -> Jlr:
    """Run the command line as a process of its own."""

    def call(*argv: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "jlremote", *argv], capture_output=True, text=True, timeout=60
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


def remember(*records: tuple[str, str]) -> None:
    """Have the laptop know sessions by host and name, the latest first."""
    folder = paths.state_directory() / "sessions"
    for age, (host, name) in enumerate(records):
        before = set(folder.glob("*"))
        record = sessions.SessionRecord(host, name, "docker", 8888 + age, last_used=1e9 - age)
        sessions.save(record)
        for file in set(folder.glob("*")) - before:
            os.utime(file, (1e9 - age, 1e9 - age))


def settle(laptop: Path, text: str) -> Path:
    """Write the settings of a laptop, and return their file."""
    file = laptop / "config" / "jlr" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
