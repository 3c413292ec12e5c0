"""One script on the host: its channel, its stdin, its terminal and `sudo`'s password."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from paramiko import Message

from jlremote.place.host import sudo
from jlremote.ssh.channels.channel_registry import FIRST_WINDOW
from jlremote.ssh.channels.session_channel import ScriptChannel
from jlremote.ssh.channels.shell_session import (
    StdinSender,
    pty_request,
    terminal_command,
    window_change,
)
from jlremote.ssh.channels.typed_text import TypedText, answering_sudo, with_password
from jlremote.ssh.interfaces import Stream
from jlremote.ssh.wire_format import string, take_string
from tests.lab.programs import PATIENCE
from tests.ssh.channels.parts import Pieces, Transport


class Channel:
    """Takes at most `window` bytes until `window` is raised again."""

    def __init__(self, window: int = 1 << 30) -> None:
        self.window = window
        self.received = b""
        self.has_end = self.is_over = False

    def room(self) -> int:
        return self.window

    def send(self, data: memoryview) -> None:
        assert 0 < len(data) <= self.window
        self.window -= len(data)
        self.received += data

    def send_end(self) -> None:
        self.has_end = True


def test_a_held_stdin_stays_open() -> None:
    channel = Channel()
    StdinSender(channel, b"cat\n", None, hold=True).send()
    assert (channel.received, channel.has_end) == (b"cat\n", False)


def test_a_shell_that_has_ended_gets_nothing_more() -> None:
    channel = Channel(window=2)
    sender = StdinSender(channel, b"script", Pieces(b"input"), hold=False)
    sender.send()
    channel.is_over, channel.window = True, 100
    sender.send()
    channel.is_over = False
    sender.send()
    assert (channel.received, channel.has_end) == (b"sc", False)


@given(
    st.binary(max_size=40),
    st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=20)), max_size=8),
    st.integers(1, 7),
)
def test_all_bytes_arrive_in_order_through_any_window(
    script: bytes, pieces: list[bytes | None], window: int
) -> None:
    channel = Channel(window)
    sender = StdinSender(channel, script, Pieces(*pieces, b""), hold=False)
    for _ in range(200):
        channel.window = window
        sender.send()
    assert channel.received == script + b"".join(piece for piece in pieces if piece)
    assert channel.has_end


def opened() -> tuple[ScriptChannel, Transport]:
    transport = Transport()
    channel = ScriptChannel(transport)
    channel.ask(b"session")
    channel._set_remote_channel(77, 10, 1000)
    transport.sent.clear()
    return channel, transport


def stderr(data: bytes) -> Any:
    return Message((1).to_bytes(4, "big") + string(data))


def test_both_streams_come_in_the_order_of_their_arrival() -> None:
    channel, _ = opened()
    channel._take(memoryview(b"one"))
    channel._take(memoryview(b"two"))
    channel._feed_extended(stderr(b"three"))
    channel._take(memoryview(b"four"))
    assert channel.wake.is_set()
    taken = [channel.take() for _ in range(4)]
    assert taken == [("stdout", b"onetwo"), ("stderr", b"three"), ("stdout", b"four"), None]


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


def test_what_ends_the_channel_wakes_all_who_wait() -> None:
    for end in (ScriptChannel.lost, ScriptChannel.closed, lambda it: it._request_failed(None)):
        channel, _ = opened()
        end(channel)
        assert channel.is_over
        assert channel.exit_status is None
        assert all(event.is_set() for event in (channel.answered, channel.exit, channel.wake))


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
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout == text.encode()


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


def test_a_script_without_sudo_stays_as_it_is() -> None:
    printed = Printed()
    unchanged = answering_sudo(b"id\n", None, printed, Source(), in_terminal=False)
    assert unchanged == (b"id\n", None, printed)
    assert with_password(b"id\n", Source()) == b"id\n"
    assert with_password(SCRIPT, None) == SCRIPT


def test_a_wrong_password_in_front_of_a_script_is_noted_and_the_output_passed_on() -> None:
    printed, source = Printed(), Source()
    script, _, output = answering_sudo(SCRIPT, None, printed, source, in_terminal=False)
    assert script == with_password(SCRIPT, source)
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
