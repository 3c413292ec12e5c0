"""The changes from a command's own streams to its direct ones, with a transport in memory."""

from __future__ import annotations

import pytest

from jlremote.errors import LinkLost
from jlremote.ssh.sessions.direct_streams import COUNT, DirectWay
from jlremote.ssh.sessions.script_channel import ScriptChannel
from jlremote.ssh.sessions.shell_session import StdinSender
from tests.ssh.channels.parts import Transport
from tests.ssh.sessions.test_shell_session import Pieces

LINE = b"word 4711 secret\n"


class Where:
    """As `Direct` has it."""

    address = "172.17.0.2"
    word = "word"


class Command:
    """A command whose session is open, and its direct way."""

    def __init__(self) -> None:
        self.transport = Transport()
        self.session = ScriptChannel(self.transport)
        self.session.ask(b"session")
        self.session._set_remote_channel(77, 1 << 20, 1 << 15)
        self.way = DirectWay(self.session, Where(), None)
        self.transport.sent.clear()

    def sent(self) -> bytes:
        """Return what was sent since the last call."""
        sent = b"".join(self.transport.sent)
        self.transport.sent.clear()
        return sent

    def connect(self) -> None:
        """Let the other half announce itself, and accept the connection."""
        assert self.way.passing(LINE) == b""
        assert b"172.17.0.2" in self.sent()
        assert self.way.channel is not None
        self.way.channel._set_remote_channel(78, 1 << 20, 1 << 15)
        self.way.go_on()
        assert self.sent().endswith(b"secret")


@pytest.mark.parametrize("cut", range(1, len(LINE)))
def test_the_announcement_is_taken_out_wherever_it_is_cut(cut: int) -> None:
    command = Command()
    whole = b"marker\n" + LINE + b"first"
    cut += len(b"marker\n")
    passed = command.way.passing(whole[:cut]) + command.way.passing(whole[cut:])
    assert (passed, command.way.passing(b" word ")) == (b"marker\nfirst", b" word ")
    assert command.way.channel is not None


def test_what_is_no_announcement_waits_for_nothing() -> None:
    command = Command()
    assert command.way.passing(b"marker\n") == b"marker\n"
    assert command.way.passing(b"word 0 -\nrest") == b"rest"
    assert command.way.channel is None
    assert command.way.is_over(0.0)


def test_output_waits_for_all_that_came_before() -> None:
    command = Command()
    command.connect()
    channel = command.way.channel
    assert channel is not None
    channel._take(memoryview(COUNT.pack(7)[:5]))
    channel._take(memoryview(COUNT.pack(7)[5:] + b"after"))
    command.way.go_on()
    assert channel.take() is None
    assert command.way.passing(b"before!") == b"before!"
    command.way.go_on()
    assert channel.take() == ("stdout", b"after")
    channel.consumed(5)
    assert not command.way.is_over(0.0)
    channel._handle_eof(None)
    assert command.way.is_over(0.0)


def test_input_changes_over_once_with_the_count_of_what_went_before() -> None:
    command = Command()
    pieces = Pieces(b"one", None, b"two", b"three", b"")
    sender = StdinSender(command.session, b"script", pieces, hold=False, direct=command.way)
    sender.send()
    assert command.sent().endswith(b"one")
    command.connect()
    sender.send()
    count, two, three = COUNT.pack(3), b"two", b"three"
    sent = command.sent()
    at = [sent.index(part) for part in (count, two, three)]
    assert at == sorted(at)
    assert command.way.channel is not None


def test_input_stays_where_the_connection_is_refused() -> None:
    command = Command()
    command.way.passing(LINE)
    assert command.way.channel is not None
    command.way.channel.refuse("administratively prohibited")
    command.way.go_on()
    assert command.way.for_input(3) is None
    assert command.way.is_over(0.0)


def test_output_that_does_not_come_is_never_taken_for_the_end() -> None:
    """As where the container was removed with its network, or the network stands still."""
    command = Command()
    command.connect()
    assert not command.way.is_over(0.0)
    command.session.exited(0)
    assert not command.way.is_over(0.0)
    command.session.exited_at -= 60
    with pytest.raises(LinkLost, match="nothing of its output"):
        command.way.is_over(0.0)
    channel = command.way.channel
    assert channel is not None
    channel._take(memoryview(COUNT.pack(0)))
    assert not command.way.is_over(0.0)
