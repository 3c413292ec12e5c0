"""The link's log: what it begins with, its size, its harmless text, and stacks on request."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jlremote import __version__
from jlremote.link.client.dial import start_link
from jlremote.link.client.link import Link
from jlremote.link.service.link_process import MOST_LOG_BYTES
from jlremote.link.wire.link_files import link_files
from jlremote.questions import NeverAsks
from tests.link.fakes import until

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


def test_a_log_begins_with_the_versions_and_the_host(tmp_path: Path) -> None:
    path = tmp_path / "link.log"
    text = logged(path)
    assert f"link to dgx: jlr {__version__}, Python 3." in text
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("value", "times"), [("", 1), ("debug", 3), ("DEBUG", 3)])
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
    logging.info("x" * {MOST_LOG_BYTES // 10})
    os.write(2, b"from stderr\\n")
logging.info("the latest")"""
    text = logged(path, program)
    assert {file.name for file in tmp_path.iterdir()} == {"link.log", "link.log.1"}
    assert "the latest" in text
    assert "from stderr" in text
    assert all(file.stat().st_size < 1.2 * MOST_LOG_BYTES for file in tmp_path.iterdir())


def test_a_servers_words_in_a_log_cannot_drive_the_terminal_that_shows_it(tmp_path: Path) -> None:
    text = logged(tmp_path / "link.log", r'logging.error("\x1b]52;c;ZXZpbA==\x07gone\x1b[2J")')
    assert "ERROR root: gone\n" in text
    assert "\x1b" not in text


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGUSR1")
def test_a_signal_adds_the_stacks_of_a_link_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    files = link_files("nowhere", None)
    start_link(files)
    link = Link("nowhere", None, NeverAsks("a test"))
    try:
        assert link.status().state == "down"
        pid = re.search(r", pid (\d+)$", files.log.read_text(), re.MULTILINE)
        assert pid is not None
        process = psutil.Process(int(pid[1]))
        for _ in range(100):  # also while its threads begin and end
            process.send_signal(signal.SIGUSR1)
            link.status()
        until(lambda: "in _accept_one" in files.log.read_text(), "the stacks in the log")
        assert link.status().state == "down"
    finally:
        assert link.shut_down()
    process.wait(20)
