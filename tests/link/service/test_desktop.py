"""Notices on the desktop: words stay words, and a machine without a desktop is in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jlremote.link.service import desktop

WORDS = ("zih/work", 'it ends; `rm -rf` "$HOME" --help')


def test_a_notice_is_shown_by_the_systems_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/shown\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    desktop.show(*WORDS)
    assert (tmp_path / "shown").read_text().splitlines()[-2:] == list(WORDS)
    assert (desktop.command("darwin", *WORDS) or ())[-2:] == WORDS
    assert desktop.command("win32", *WORDS) is None


@pytest.mark.parametrize("failure", [OSError("missing"), subprocess.TimeoutExpired("x", 1)])
def test_a_machine_that_shows_none_says_so_in_the_log(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "platform", "linux")
    caplog.set_level("INFO")
    desktop.show(*WORDS)
    assert "no notice on the desktop" in caplog.text
