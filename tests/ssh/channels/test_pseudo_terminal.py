"""A script in a terminal: on the command line, in a form that every login shell reads alike."""

from __future__ import annotations

import os
import re
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.ssh.channels.shell_session import pty_request, terminal_command, window_change
from jlremote.ssh.wire_format import take_string

SIZE = os.terminal_size((132, 43))


def test_a_pty_request_names_the_terminal_its_size_and_utf_8() -> None:
    kind, rest = take_string(pty_request("xterm-256color", SIZE))
    assert kind == b"xterm-256color"
    assert rest.startswith(window_change(SIZE))
    modes, rest = take_string(rest[16:])
    assert rest == b""
    assert modes.endswith(b"\0")
    assert bytes((42, 0, 0, 0, 1)) in modes, "IUTF8"


@given(st.binary(max_size=80))
def test_no_byte_of_a_script_means_anything_to_a_login_shell(script: bytes) -> None:
    line = terminal_command(script)
    quoted = line.rpartition(" sh '")[2].removesuffix("'")
    assert line.isascii()
    assert re.fullmatch(r"(?:[A-Za-z0-9 _\-./:,=+@]|\\0[0-7]{3})*", quoted)


@settings(max_examples=5)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0'"), max_size=30))
def test_any_text_reaches_the_script_unchanged(text: str) -> None:
    done = subprocess.run(
        ["sh", "-c", terminal_command(f"printf %s '{text}'".encode())],
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert done.stdout == text.encode()
