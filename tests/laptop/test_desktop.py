"""Notices on the desktop: text of the host stays text, and having no desktop is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jlremote.errors import JlrError
from jlremote.laptop import desktop
from tests.lab.desktop import bus
from tests.lab.desktop import desktop as of_the_lab
from tests.lab.programs import write_program

HOSTILE = "a <b>cell</b> & more\x1b]0;title\x07\x1b[31m ended\r\n\u202e`rm -rf`"


@pytest.mark.parametrize(
    ("capabilities", "shown"),
    [
        (("body", "body-markup"), "a &lt;b&gt;cell&lt;/b&gt; &amp; more ended `rm -rf`"),
        (("body",), "a <b>cell</b> & more ended `rm -rf`"),
    ],
)
def test_text_of_the_host_is_shown_without_markup_and_control_characters(
    capabilities: tuple[str, ...], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with of_the_lab(*capabilities) as seen:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", seen.address)
        desktop.show("dgx/cont1\x07", HOSTILE)
        desktop.show("x" * 1000, "y\n" * 1000)
        assert seen.shown[0] == ("dgx/cont1", shown)
        title, text = seen.shown[1]
        assert (len(title), len(text)) == (100, 400)
        assert (title[-1], text[-1]) == ("…", "…")


def test_a_desktop_that_is_missing_or_shows_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in (f"unix:path={tmp_path}/none", "tcp:host=x,port=1", "nonsense"):
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        with pytest.raises(JlrError, match="no desktop session"):
            desktop.show("title", "text")
    with bus() as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        with pytest.raises(JlrError, match="shows no notices"):
            desktop.show("title", "text")


def test_a_mac_is_asked_by_its_own_program_with_text_as_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "osascript"
    write_program(
        program, f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/shown; cat >{tmp_path}/script\n"
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "platform", "darwin")
    desktop.show("dgx", 'it ended; `rm` "$HOME"')
    assert (tmp_path / "shown").read_text().splitlines() == ["-", "dgx", 'it ended; `rm` "$HOME"']
    assert (tmp_path / "script").read_text().startswith("on run argv\n")
    desktop.show("-e", 'do shell script "calc"')
    # What follows the script's name is no option: osascript(1).
    assert (tmp_path / "shown").read_text().splitlines()[0] == "-"
    program.write_text("#!/bin/sh\necho no display >&2; exit 1\n")
    with pytest.raises(JlrError, match="no display"):
        desktop.show("dgx", "text")
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(JlrError, match="win32"):
        desktop.show("dgx", "text")
