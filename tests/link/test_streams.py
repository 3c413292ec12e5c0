"""A command's stdin arrives whole, and however it ends, nothing stays behind on the host."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest

from jlremote.errors import JlrError
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.fakes import until
from tests.link.servers import start_inside
from tests.long import LONG

End = Callable[[subprocess.Popen[str], Desk, SSHServer], None]


ENDS: dict[str, End] = {
    "client killed": lambda command, _, __: command.kill(),
    "client interrupted": lambda command, _, __: command.terminate(),
    "link killed": lambda _, desk, __: desk.process().kill(),
    "laptop gone": lambda _, __, sshd: sshd.drop_connections(),
}


@contextmanager
def following(laptop: Laptop, name: str) -> Iterator[subprocess.Popen[str]]:
    """Run `jlr logs -f` and give it once it has shown the line `begun`."""
    command = laptop.spawn("logs", "-f", name)
    assert command.stdout is not None
    with command.stdout:
        assert command.stdout.readline() == "begun\n"
        yield command
        command.kill()
        command.wait()


@pytest.mark.parametrize(
    "end", ["client killed", LONG("client interrupted"), LONG("link killed"), "laptop gone"]
)
def test_a_log_that_is_followed_in_a_container_is_left_alone_there(
    desk: Desk, sshd: SSHServer, container: ContainerFactory, end: str
) -> None:
    inside = container("lab/plain")
    start_inside(inside, 8888)
    log = f"/tmp/jlr-0/{inside.name}/jupyter.log"
    inside.execute("sh", "-c", f"echo begun > {log}")
    desk.start(inside.name, "docker")
    before = set(processes_in(inside))  # the session's own watch may end
    with following(desk.laptop, inside.name) as command:
        assert any("tail" in line for line in processes_in(inside))
        inside.execute("sh", "-c", f"echo more >> {log}")
        assert command.stdout is not None
        assert command.stdout.readline() == "more\n"
        ENDS[end](command, desk, sshd)
        until(lambda: before.issuperset(processes_in(inside)), "the end of what followed")
        assert any("stand_in.py" in line for line in processes_in(inside))


def processes_in(container: Container) -> list[str]:
    """Return the command lines of a container's processes."""
    lines = container.engine.docker("top", container.name, "-o", "pid,args").splitlines()[1:]
    return sorted(line.split(maxsplit=1)[1] for line in lines)


MEGABYTE = 1 << 20


def text(desk: Desk, script: str, given: list[bytes] | Iterator[bytes], *, end: bool) -> str:
    with desk.link().stream(script, given, end=end) as output:
        return "".join(output)


def test_the_shell_never_runs_stdin_as_its_script(desk: Desk) -> None:
    """dash reads its script by blocks, and what lies behind it would be swallowed."""
    given = [b"echo injected\n", b"exit 3\n"]
    read = 'IFS= read -r first; echo "[$first]"; cat'
    assert text(desk, read, given, end=True) == "[echo injected]\nexit 3\n"


def test_stdin_stays_open_after_the_pieces_unless_its_end_is_wanted(desk: Desk) -> None:
    script = "read -r word; echo $word; read -r more; echo hung up"
    with desk.link().stream(script, [b"one\n"]) as output:
        parts = iter(output)
        assert next(parts) == "one\n"
    assert text(desk, script, [b"one\n"], end=True) == "one\nhung up\n"


def test_stdin_that_a_script_leaves_unread_is_not_run(desk: Desk) -> None:
    pieces = [b"echo injected\n", b"exit 3\n"]
    with desk.link().stream("echo mine", pieces) as output:
        assert "".join(output) == "mine\n"
        assert output.status == 0


def test_an_error_while_making_a_piece_ends_the_script(desk: Desk) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"begun\n"
        raise JlrError("the file changed")

    with pytest.raises(JlrError, match="the file changed"):
        text(desk, "cat", pieces(), end=True)


def test_eighty_megabytes_pass_without_piling_up(desk: Desk) -> None:
    """The host is slower than the command: memory of neither process may grow with what waits."""
    desk.run("true")
    link, command = desk.process(), psutil.Process()
    before = link.memory_info().rss, command.memory_info().rss
    peaks = [0, 0]
    block = os.urandom(MEGABYTE // 4)

    def pieces() -> Iterator[bytes]:
        for _ in range(320):
            yield block
            peaks[:] = map(max, peaks, (link.memory_info().rss, command.memory_info().rss))

    expected = hashlib.sha256(block * 320).hexdigest()
    assert text(desk, "sleep 1; sha256sum", pieces(), end=True) == f"{expected}  -\n"
    grown = [peak - start for peak, start in zip(peaks, before, strict=True)]
    assert max(grown) < 40 * MEGABYTE, grown
