"""Scripts over a connection: exit status, streams, limits, and every login shell."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from jlremote.errors import Busy, LinkLost
from jlremote.place.host.shell_text import until_hang_up
from jlremote.ssh.channels.channel_registry import KEPT
from jlremote.ssh.channels.session_channel import Stream
from jlremote.ssh.connection import Connection
from tests.lab.accounts import Account, claimed_account
from tests.lab.line import Line
from tests.lab.programs import PATIENCE, load, wait_until
from tests.lab.sshd import SSHServer
from tests.link.fakes import Call
from tests.long import LONG
from tests.ssh.conftest import StartServer, open_folder
from tests.ssh.laptop import Laptop

MEGABYTES = 3


class Collected:
    """What a script printed."""

    def __init__(self) -> None:
        self.streams: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def __call__(self, stream: Stream, data: bytes) -> None:
        self.streams[stream] += data

    @property
    def stdout(self) -> bytes:
        return bytes(self.streams["stdout"])

    @property
    def stderr(self) -> bytes:
        return bytes(self.streams["stderr"])


@pytest.fixture(scope="module")
def home_laptop(
    shared: StartServer, shared_key: Path, key_folder: Path, account: Account
) -> tuple[SSHServer, Laptop]:
    """A laptop that knows the module's plain server."""
    laptop = Laptop(open_folder(key_folder), shared_key)
    server = shared()
    laptop.knows(server)
    laptop.configure(server, account)
    return server, laptop


@pytest.fixture
def connection(home_laptop: tuple[SSHServer, Laptop]) -> Iterator[Connection]:
    with home_laptop[1].connected() as connected:
        yield connected


def run(connection: Connection, script: str, timeout: float | None = 20) -> tuple[int, Collected]:
    output = Collected()
    return connection.execute(script.encode(), output, timeout=timeout), output


def living(account: Account) -> list[str]:
    names = []
    for process in account.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            names += [process.name()] if process.status() != psutil.STATUS_ZOMBIE else []
    return names


def test_the_exit_status_and_both_streams_come_back(connection: Connection) -> None:
    for status in (0, 1, 77, 255):
        ended, output = run(connection, f"printf out; printf err >&2; exit {status}")
        assert (ended, output.stdout, output.stderr) == (status, b"out", b"err")


def test_both_streams_are_drained_while_the_script_is_still_sent(connection: Connection) -> None:
    """A remote shell that is flooded with input while it floods us must not stall either side."""
    flood = f"head -c {MEGABYTES}000000 /dev/zero; head -c {MEGABYTES}000000 /dev/zero >&2\n"
    padding = f"# {'x' * 1000}\n" * 3000
    status, output = run(connection, flood + padding + flood + "exit 3")
    assert status == 3
    assert len(output.stdout) == len(output.stderr) == 2 * MEGABYTES * 1_000_000


def test_output_that_follows_the_exit_status_is_kept_also_after_silence(
    connection: Connection,
) -> None:
    status, output = run(connection, "sleep 1.2; (sleep 0.3; echo late) & exit 3")
    assert (status, output.stdout) == (3, b"late\n")


def test_a_time_limit_ends_the_call_and_what_it_ran(
    connection: Connection, account: Account
) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        run(connection, "sleep 61; true", timeout=0.5)
    assert time.monotonic() - began < 5 * load()
    wait_until(lambda: "sleep" not in living(account), "the end of the remote process")
    assert run(connection, "exit 4")[0] == 4


def test_cancelling_ends_the_call_and_what_it_ran(connection: Connection, account: Account) -> None:
    cancelled, started = threading.Event(), threading.Event()
    script = b"echo started; sleep 62; true"
    running = Call(
        lambda: connection.execute(script, lambda *_: started.set(), cancelled=cancelled)
    )
    assert started.wait(PATIENCE)
    cancelled.set()
    with pytest.raises(LinkLost, match="cancelled"):
        running.result()
    wait_until(lambda: "sleep" not in living(account), "the end of the remote process")


def test_a_broken_connection_ends_the_call(home_laptop: tuple[SSHServer, Laptop]) -> None:
    server, laptop = home_laptop
    with laptop.connected() as connection:
        started = threading.Event()
        script = b"echo up; sleep 63"
        running = Call(
            lambda: connection.execute(script, lambda *_: started.set(), timeout=PATIENCE)
        )
        assert started.wait(PATIENCE)
        server.drop_connections()
        with pytest.raises(LinkLost):
            running.result()
        assert connection.wait_closed(5)
        with pytest.raises(LinkLost):
            run(connection, "true")
        with pytest.raises(LinkLost):
            connection.probe(5)


def test_twenty_calls_at_once_share_eight_sessions(connection: Connection) -> None:
    calls = [Call(partial(run, connection, f"sleep 0.1; exit {number}")) for number in range(20)]
    assert [call.result()[0] for call in calls] == list(range(20))


def test_a_server_with_fewer_sessions_says_so(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    laptop.configure(start(["MaxSessions 1"]), account)
    with laptop.connected() as connection:
        started = threading.Event()
        first = Call(lambda: connection.execute(b"echo up; sleep 2", lambda *_: started.set()))
        assert started.wait(PATIENCE)
        with pytest.raises(Busy, match="no more sessions"):
            run(connection, "true")
        assert first.result() == 0


def test_a_preemptible_session_ends_when_the_server_permits_only_one(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    laptop.configure(start(["MaxSessions 1"]), account)
    with laptop.connected() as connection:
        started = threading.Event()
        script = f"{{ echo up; {until_hang_up('sleep 65')} }}\n".encode()
        attending = Call(lambda: connection.run_preemptible(script, lambda *_: started.set()))
        assert started.wait(PATIENCE)
        assert run(connection, "exit 4")[0] == 4
        assert not attending.result()
        # sshd counts a session a moment longer than it lasts.
        wait_until(
            lambda: connection.run_preemptible(b"exit 0\n", lambda *_: None), "another's own end"
        )


def test_calls_without_a_time_limit_leave_sessions_for_others(connection: Connection) -> None:
    over, begun = threading.Event(), threading.Semaphore(0)
    script = b"echo up; exec sleep 64"
    lasting = partial(connection.execute, script, lambda *_: begun.release(), cancelled=over)
    calls = [Call(lasting) for _ in range(KEPT)]
    assert all(begun.acquire(timeout=PATIENCE) for _ in calls)
    with pytest.raises(Busy, match="8 terminals, logs, mounts or forwards"):
        run(connection, "true", timeout=None)
    assert run(connection, "exit 4")[0] == 4
    over.set()
    for call in calls:
        with pytest.raises(LinkLost):
            call.result()
    assert run(connection, "exit 5", timeout=None)[0] == 5


def test_an_account_without_a_shell_is_an_error_and_no_hang(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    laptop.configure(start(["ForceCommand internal-sftp"]), account)
    with laptop.connected() as connection:
        began = time.monotonic()
        status, output = run(connection, "echo inside")
        assert b"inside" not in output.stdout
        assert status != 0
        assert time.monotonic() - began < 10 * load()


# Login shells

NOISE = "echo noise; printf '\\033]0;title\\007\\033[31mred'; "
FLOOD = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; "
RC_FILES = {
    "/bin/bash": (".bashrc", ".bash_profile"),
    "/usr/bin/zsh": (".zshenv", ".zshrc"),
    "/usr/bin/fish": (".config/fish/config.fish",),
    "/usr/bin/tcsh": (".tcshrc", ".login"),
    "/bin/dash": (".profile",),
}
BREAK_PATH = {
    "/usr/bin/fish": "set -gx PATH /nonexistent",
    "/usr/bin/tcsh": "setenv PATH /nonexistent",
}
MARKER = b"==7f3a=="


ALWAYS = ("/bin/bash", "/usr/bin/tcsh")


@pytest.fixture(scope="module", params=[s if s in ALWAYS else LONG(s) for s in RC_FILES])
def shell_user(request: pytest.FixtureRequest) -> Iterator[Account]:
    if not Path(request.param).exists():
        pytest.skip(f"{request.param} is not installed")
    with claimed_account(request.param) as account:
        yield account
        wait_until(lambda: not living(account), "the end of the user's processes")


@pytest.fixture
def shell_laptop(
    shell_user: Account, shared: StartServer, shared_key: Path, key_folder: Path
) -> Laptop:
    """A laptop that logs in as the user of another shell."""
    laptop = Laptop(open_folder(key_folder), shared_key)
    laptop.knows(shared())
    laptop.configure(shared(), shell_user)
    return laptop


@pytest.mark.parametrize("rc", [LONG(""), NOISE, FLOOD], ids=["quiet", "noise", "megabytes"])
def test_a_script_works_after_output_of_the_login_shell(
    rc: str, shell_user: Account, shell_laptop: Laptop
) -> None:
    write_rc(shell_user, rc)
    script = f"printf '{MARKER.decode()}%s' \"$0 it's $((6*7)) \\\\\"; exit 5"
    with shell_laptop.connected() as connection:
        status, output = run(connection, script)
    assert status == 5
    before, marker, after = output.stdout.partition(MARKER)
    assert marker == MARKER
    assert after == b"/bin/sh it's 42 \\"
    if not rc:
        assert before == b""


def test_a_login_shell_that_exits_ends_the_call(shell_user: Account, shell_laptop: Laptop) -> None:
    write_rc(shell_user, "exit 9")
    theirs = shell_laptop.ssh("echo inside; exit 5")
    with shell_laptop.connected() as connection:
        status, output = run(connection, "echo inside; exit 5")
    reads_rc = theirs.returncode == 9
    assert status == (9 if reads_rc else 5)
    assert (b"inside" in output.stdout) == (not reads_rc)


@pytest.mark.parametrize(
    "rc", ["exec zsh", "export TMOUT=1", "readonly TMOUT=1; export TMOUT"], ids=str
)
def test_a_script_is_read_by_sh_without_a_time_limit_whatever_bash_becomes(
    rc: str, host: SSHServer, guest: Laptop, account: Account
) -> None:
    before = account.home / ".bashrc"
    kept = before.read_text()
    before.write_text(f"{rc}\n")
    guest.configure(host, account)
    script = (
        'set -- a\nprintf "%s" "${ZSH_VERSION-}${TMOUT-}$#"; words="1 2"; for word in $words; do\n'
        'printf "<%s>" "$word"; done; sleep 1.5 | { read -r line; echo "$?"; }\n'
    )
    try:
        with guest.connected() as connection:
            status, output = run(connection, script)
    finally:
        before.write_text(kept)
    assert (status, output.stdout) == (0, b"1<1><2>1\n")


def test_a_script_finds_programs_though_startup_files_break_the_path(
    shell_user: Account, shell_laptop: Laptop
) -> None:
    """As ssh would not: the person's own programs come first, the system's after them."""
    write_rc(shell_user, BREAK_PATH.get(shell_user.shell, "export PATH=/nonexistent"))
    theirs = shell_laptop.ssh("id -u")
    with shell_laptop.connected() as connection:
        status, output = run(connection, 'id -u; echo "$PATH"')
    uid, path = output.stdout.decode().split()
    assert (status, uid) == (0, str(shell_user.uid))
    reads_rc = theirs.returncode != 0
    assert reads_rc is (path == "/nonexistent:/usr/local/bin:/usr/bin:/bin")
    assert reads_rc is not shell_user.shell.endswith("dash")


def write_rc(account: Account, text: str) -> None:
    for name in RC_FILES[account.shell]:
        path = account.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


class Endless:
    """Input that never ends."""

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Nothing comes later than it is asked for."""

    def take(self) -> bytes:
        return bytes(1 << 18)


def test_input_on_its_way_to_a_command_that_ends_does_not_end_the_connection(
    host: SSHServer, guest: Laptop, account: Account
) -> None:
    """Its output is held open, so the channel is closed from here while more room is reported."""
    line = Line(host.port, delay=0.025)
    guest.configure(host, account, f"Port {line.port}", f"HostKeyAlias [127.0.0.1]:{host.port}")
    script = b"sleep 632 &\nexec head -c 3000000 >/dev/null\n"
    try:
        with guest.connected() as connection:
            for _ in range(5):
                assert connection.execute(script, Collected(), stdin=Endless()) == 0
                assert run(connection, "echo still")[1].stdout == b"still\n"
    finally:
        line.take_down()
        account.end_processes()


def test_a_server_that_is_far_away_is_not_taken_for_one_that_refuses(
    host: SSHServer, guest: Laptop, account: Account
) -> None:
    line = Line(host.port)
    guest.configure(host, account, f"Port {line.port}", f"HostKeyAlias [127.0.0.1]:{host.port}")
    try:
        with guest.connected() as connection:
            line.delay = 0.25  # there and back 0.5 s
            told = Collected()
            assert connection.execute(b"echo far\n", told, cancelled=threading.Event()) == 0
            assert told.stdout == b"far\n"
    finally:
        line.take_down()
