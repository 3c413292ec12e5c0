"""One script on the host: its channel, its stdin, its terminal and `sudo`'s password."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from paramiko import Message

from jlremote.place.host import sudo
from jlremote.ssh.channels.channel_registry import FIRST_WINDOW
from jlremote.ssh.channels.session_channel import ScriptChannel, Stream
from jlremote.ssh.channels.shell_session import TypedText, answering_sudo, terminal_command
from jlremote.ssh.wire_format import string
from tests.ssh.channels.parts import Transport


def opened() -> tuple[ScriptChannel, Transport]:
    transport = Transport()
    channel = ScriptChannel(transport)
    channel.ask(b"session")
    channel._set_remote_channel(77, 10, 1000)
    transport.sent.clear()
    return channel, transport


def stderr(data: bytes) -> Any:
    return Message((1).to_bytes(4, "big") + string(data))


def test_a_server_may_send_no_more_than_was_passed_on() -> None:
    channel, transport = opened()
    for _ in range(FIRST_WINDOW // 1024):
        channel._take(memoryview(bytes(512)))
        channel._feed_extended(stderr(bytes(512)))
    channel.run_actions()
    assert transport.sent == []
    channel.consumed(FIRST_WINDOW)
    channel.run_actions()
    assert len(transport.sent) == 1


@given(st.binary(max_size=80))
def test_no_byte_of_a_script_means_anything_to_a_login_shell(script: bytes) -> None:
    line = terminal_command(script)
    quoted = line.rpartition(" sh '")[2].removesuffix("'")
    assert line.isascii()
    assert re.fullmatch(r"(?:[A-Za-z0-9 _\-./:,=+@]|\\0[0-7]{3})*", quoted)


SCRIPT = b"sudo -A -k docker ps\n"
MARKER = "c0ffee"


class Source:
    """Knows a password for scripts with `sudo` in them."""

    def __init__(self) -> None:
        self.refusals = 0

    def password_for(self, script: bytes) -> str | None:
        return "s3cret" if b"sudo" in script else None

    def refused(self) -> None:
        self.refusals += 1


class Printed:
    """Collects output."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Stream, bytes]] = []

    def __call__(self, stream: Stream, data: bytes) -> None:
        self.pieces.append((stream, data))


def test_a_wrong_password_in_front_of_a_script_is_noted_and_the_output_passed_on() -> None:
    printed, source = Printed(), Source()
    script, _, output = answering_sudo(SCRIPT, None, printed, source, in_terminal=False)
    assert script.endswith(SCRIPT)
    assert b"s3cret" in script
    output("stderr", b"sudo: 1 incorrect password attempt\n")
    output("stdout", b"more")
    assert source.refusals == 1
    assert b"".join(data for _, data in printed.pieces).endswith(b"attempt\nmore")


def test_in_a_terminal_the_password_is_typed_and_in_no_script() -> None:
    printed = Printed()
    script, stdin, output = answering_sudo(SCRIPT, None, printed, Source(), in_terminal=True)
    assert b"s3cret" not in script
    assert stdin is not None
    assert stdin.take() is None, "it is not asked for yet"
    marker = script.split(b"printf %s ")[1].split(b";")[0]
    output("stdout", b"hello " + marker)
    line = stdin.take()
    assert line is not None
    assert b"s3cret" not in line, "no byte of it means anything to a terminal"
    assert stdin.take() is None
    assert printed.pieces == [("stdout", b"hello ")]


class Keys:
    """What a person has typed already."""

    def take(self) -> bytes | None:
        return b"ls\r"

    def on_ready(self, wake: object) -> None:
        pass


def test_the_password_is_typed_at_the_marker_before_other_input() -> None:
    shown: list[bytes] = []
    typing = TypedText(sudo.typed("pw\x03"), MARKER, Keys(), lambda _, data: shown.append(data))
    assert typing.take() is None
    for byte in f"noise c0ff {MARKER}$ ".encode():
        typing.output("stdout", bytes((byte,)))
    assert typing.take() == b"\\0160\\0167\\0003\n"
    assert typing.take() == b"ls\r"
    typing.output("stdout", MARKER.encode())
    assert b"".join(shown) == f"noise c0ff $ {MARKER}".encode()
