"""The password of `sudo` for a script, and what happens when it is wrong."""

from __future__ import annotations

from jlremote.ssh.channels.typed_text import SudoScript, with_password
from jlremote.ssh.interfaces import Stream

SCRIPT = b"sudo -A -k docker ps\n"


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
    sudo = SudoScript(b"id\n", None, printed, Source(), in_terminal=False)
    assert (sudo.script, sudo.stdin, sudo.output) == (b"id\n", None, printed)
    assert with_password(b"id\n", Source()) == b"id\n"
    assert with_password(SCRIPT, None) == SCRIPT


def test_the_password_is_put_in_front_of_the_script() -> None:
    sudo = SudoScript(SCRIPT, None, Printed(), Source(), in_terminal=False)
    assert sudo.script.endswith(SCRIPT)
    assert b"s3cret" in sudo.script
    assert sudo.script == with_password(SCRIPT, Source())


def test_a_wrong_password_is_noted_and_the_output_passed_on() -> None:
    printed, source = Printed(), Source()
    sudo = SudoScript(SCRIPT, None, printed, source, in_terminal=False)
    sudo.output("stderr", b"sudo: 1 incorrect password attempt\n")
    sudo.output("stdout", b"more")
    assert source.refusals == 1
    assert printed.pieces == [
        ("stderr", b"sudo: 1 incorrect password attempt\n"),
        ("stdout", b"more"),
    ]


def test_in_a_terminal_the_password_is_typed_and_in_no_script() -> None:
    printed = Printed()
    sudo = SudoScript(SCRIPT, None, printed, Source(), in_terminal=True)
    assert b"s3cret" not in sudo.script
    assert sudo.stdin is not None
    assert sudo.stdin.take() is None, "it is not asked for yet"
    marker = sudo.script.split(b"printf %s ")[1].split(b";")[0]
    sudo.output("stdout", b"hello " + marker)
    line = sudo.stdin.take()
    assert line is not None
    assert b"s3cret" not in line, "no byte of it means anything to a terminal"
    assert sudo.stdin.take() is None
    assert printed.pieces == [("stdout", b"hello ")]
