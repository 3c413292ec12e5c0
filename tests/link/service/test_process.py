"""A new link lets go of the shell that started it, and says why it cannot listen."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from jlremote.errors import Bug, JlrError, Unreachable
from jlremote.link.client.call import start_link
from jlremote.link.client.link import Link
from jlremote.link.service import link_process
from jlremote.link.service.link_process import LinkSocket
from jlremote.link.wire.link_files import LinkFiles
from jlremote.questions import NeverAsks
from tests.lab.programs import PATIENCE, write_program
from tests.link.fakes import own_folders, until
from tests.outages.parts import within

pytestmark = pytest.mark.lab  # real links


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinkFiles:
    own_folders(monkeypatch, tmp_path, "HOME")
    return LinkFiles("nowhere", None)


@contextmanager
def running(files: LinkFiles) -> Iterator[psutil.Process]:
    start_link(files)
    link = Link(files.host, files.ssh_config, NeverAsks("a test"))
    try:
        pid = re.search(r", pid (\d+)$", files.log.read_text(), re.MULTILINE)
        assert pid is not None
        process = psutil.Process(int(pid[1]))
        yield process
    finally:
        assert link.shut_down()
    process.wait(PATIENCE)  # until then it removes its files


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
@within(10)
def test_a_link_lets_go_of_the_folder_the_limits_and_core_dumps_of_its_shell(
    files: LinkFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    monkeypatch.chdir(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] // 2, before[1]))
    try:
        with running(files) as process:
            assert process.cwd() == "/"
            limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            assert limits == (before[1], before[1])
            assert resource.prlimit(process.pid, resource.RLIMIT_CORE) in {(0, 0), (1, 1)}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.skipif(sys.platform != "linux", reason="limits differ")
@pytest.mark.parametrize(
    "leave", ["", "link_process.leave_shell(); "], ids=["another program", "link"]
)
def test_a_link_that_crashes_leaves_no_core_dump(leave: str, tmp_path: Path) -> None:
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    crash = (
        "import os, resource; from jlremote.link.service import link_process;"
        f" resource.setrlimit(resource.RLIMIT_CORE, ({most}, {most})); {leave}"
        f"os.chdir({str(tmp_path)!r}); os.abort()"
    )
    process = os.posix_spawn(sys.executable, (sys.executable, "-c", crash), os.environ)
    _, status = os.waitpid(process, 0)
    assert os.WCOREDUMP(status) == (most != 0 and not leave)


@within(10)
def test_a_link_works_where_the_runtime_folder_has_a_long_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    own_folders(monkeypatch, long, "HOME")
    files = LinkFiles("nowhere", None)
    with running(files):
        assert Link("nowhere", None, NeverAsks("a test")).status().state == "down"
    files.socket.parent.rmdir()


def test_a_proxy_command_beside_the_person_is_found_as_by_ssh(
    files: LinkFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, folder = tmp_path / "config", tmp_path / "project"
    config.write_text("Host nowhere\n    ProxyCommand ./proxy %h\n")
    folder.mkdir()
    write_program(folder / "proxy", '#!/bin/sh\necho "$1: no way from $PWD" >&2\n')
    monkeypatch.chdir(folder)
    told = f"nowhere: no way from {folder}"
    ssh = ("ssh", "-F", str(config), "nowhere")
    theirs = subprocess.run(ssh, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert told in theirs.stderr
    files = LinkFiles("nowhere", config)
    with running(files) as process:
        assert process.cwd() == "/"
        with pytest.raises(Unreachable, match=f"proxy command of `nowhere` failed: {told}"):
            Link("nowhere", config, NeverAsks("a test")).status(connect=True)


@within(10)
def test_a_link_that_cannot_listen_says_why(files: LinkFiles) -> None:
    files.key.mkdir()  # as on a disk where no file can be written
    with pytest.raises(JlrError, match=f"cannot write `{files.key}`") as told:
        start_link(files)
    assert not isinstance(told.value, Bug)
    assert told.value.exit_code == 1


@pytest.mark.long
def test_a_link_that_another_version_started_is_told(files: LinkFiles) -> None:
    """It holds the lock, and commands cannot prove themselves to it."""
    older = LinkSocket(files)
    older.claim(0)
    try:
        with pytest.raises(JlrError, match="another link to `nowhere` runs") as told:
            start_link(files)
    finally:
        older.close()
    assert told.value.exit_code == 1
    assert "ps aux" in (told.value.hint or "")


BEGIN = """
import logging, os, sys
from pathlib import Path
from jlremote.link.service import link_process
link_process.begin_log(Path(sys.argv[1]), "dgx", os.environ)
"""


def logged(path: Path, program: str = "", **variables: str) -> str:
    """Return the log of a process that begins it, with the file as its stderr, as a link does."""
    with path.open("ab") as stderr:
        command = (sys.executable, "-c", f"{BEGIN}\n{program}", str(path))
        subprocess.run(command, check=True, stderr=stderr, env=os.environ | variables)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("value", "times"), [("", 1), ("DEBUG", 3)])
def test_details_are_logged_only_if_the_variable_asks(
    value: str, times: int, tmp_path: Path
) -> None:
    program = """
import jlremote.ssh.transport.transport
for name, level in (("jlremote", 10), ("paramiko.transport", 20), ("paramiko", 40)):
    logging.getLogger(name).log(level, "that happened")"""
    assert logged(tmp_path / "link.log", program, JLR_LOG=value).count("happened") == times


def test_a_log_is_bounded_while_the_link_runs_whoever_writes(tmp_path: Path) -> None:
    path = tmp_path / "link.log"
    program = f"""
for number in range(50):
    logging.info("x" * {link_process.MOST_LOG_BYTES // 10})
    os.write(2, b"from stderr\\n")
logging.info("the latest")"""
    text = logged(path, program)
    assert {file.name for file in tmp_path.iterdir()} == {"link.log", "link.log.1"}
    assert "the latest" in text
    assert "from stderr" in text
    assert all(
        file.stat().st_size < 1.2 * link_process.MOST_LOG_BYTES for file in tmp_path.iterdir()
    )


def test_a_servers_words_in_a_log_cannot_drive_the_terminal_that_shows_it(tmp_path: Path) -> None:
    text = logged(tmp_path / "link.log", r'logging.error("\x1b]52;c;ZXZpbA==\x07gone\x1b[2J")')
    assert "ERROR root: gone\n" in text
    assert "\x1b" not in text


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGUSR1")
def test_a_signal_adds_the_stacks_of_a_link_that_goes_on(files: LinkFiles) -> None:
    with running(files) as process:
        link = Link("nowhere", None, NeverAsks("a test"))
        for _ in range(30):  # also while its threads begin and end
            process.send_signal(signal.SIGUSR1)
            link.status()
        until(lambda: "in _accept" in files.log.read_text(), "the stacks in the log")
        assert link.status().state == "down"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, link_process.IDLE_SECONDS),
        ("60", 60.0),
        ("-5", 1.0),
        ("soon", link_process.IDLE_SECONDS),
    ],
)
def test_an_idle_link_stays_as_long_as_the_variable_says(value: str | None, seconds: float) -> None:
    environment = {} if value is None else {link_process.IDLE_VARIABLE: value}
    assert link_process.idle_seconds(environment) == seconds
