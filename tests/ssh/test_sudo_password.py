"""A password that is typed on a terminal: when it is asked for, and never shown."""

from __future__ import annotations

from jlremote.place.host import sudo
from jlremote.ssh.channels.typed_text import TypedText

MARKER = "jlr-0123456789abcdef"


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
    for byte in f"noise jlr-0 {MARKER}$ ".encode():
        typing.output("stdout", bytes((byte,)))
    assert typing.take() == b"\\0160\\0167\\0003\n"
    assert typing.take() == b"ls\r"
    typing.output("stdout", MARKER.encode())
    assert b"".join(shown) == f"noise jlr-0 $ {MARKER}".encode()
