"""What a connection needs at the host: `sudo`, a login shell, the end of the last sshd."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import Authentication, JlrError, LinkLost, NeedsAuthentication
from jlremote.link.connection.dialer import HostSide
from jlremote.link.connection.elevation import TRIES, Elevation
from jlremote.link.connection.login_look import LoginLook, question, read
from jlremote.link.wire.states import LoginShell
from jlremote.place.host.contract import Completed
from jlremote.place.host.sudo import SUDO, SUDO_IF_KNOWN
from jlremote.place.runtimes.engine.engine_errors import EngineNotPermitted
from jlremote.questions import NeverAsks
from jlremote.ssh.channels.session_channel import Output
from jlremote.ssh.config.destination import Destination
from tests.lab.programs import attempt
from tests.link.fakes import FakeConnection, FakePerson, ScriptHost, until
from tests.login.keychain import MemoryKeychain

SCRIPT = f"{' '.join(SUDO)} docker ps"
LOOKS_UP = f"{' '.join(SUDO_IF_KNOWN)} docker ps"
ADA = "sudo-password ada@dgx"
NEVER = NeverAsks("run it in a terminal")
# A password that was refused is refused in the whole process, so each test has its own.
NUMBERS = itertools.count()


ASKS = Completed(1, "", "sudo: a password is required")
REFUSES = Completed(1, "", "ada is not allowed to execute '/usr/bin/docker' as root on dgx.")


def sudo_host(password: str) -> ScriptHost:
    return ScriptHost(lambda script: Completed(0, "", "") if f" {password} |" in script else ASKS)


@pytest.fixture
def password() -> str:
    return f"correct-horse-{next(NUMBERS)}"


@pytest.fixture
def keychain() -> MemoryKeychain:
    return MemoryKeychain()


@pytest.fixture
def elevation(keychain: MemoryKeychain) -> Elevation:
    return Elevation(lambda: Destination("dgx", "dgx", 22, "ada"), keychain)


def test_a_typed_password_is_tested_and_given_to_every_script_with_sudo(
    elevation: Elevation, password: str
) -> None:
    host, person = sudo_host(password), FakePerson(password)
    for _ in range(2):
        elevation.prepare(host, SCRIPT, person)
    assert [question.kind for question in person.questions] == ["password", "remember"]
    assert "ada@dgx" in person.questions[0].text
    assert len(host.tried) == 2  # without a password, and with it
    for script in (SCRIPT, LOOKS_UP):
        assert elevation.password_for(script.encode()) == password
    assert elevation.password_for(b"docker ps") is None


def test_a_wrong_password_is_not_tried_twice(elevation: Elevation, password: str) -> None:
    host, person = sudo_host(password), FakePerson(f"not-{password}")
    with pytest.raises(Authentication, match="`sudo` refused every password") as refused:
        elevation.prepare(host, SCRIPT, person)
    assert len(person.questions) == TRIES
    assert len(host.tried) == 2
    assert "login password" in (refused.value.hint or "")
    assert elevation.password_for(SCRIPT.encode()) is None


def test_without_any_password_the_error_says_what_else_would_do(
    elevation: Elevation, password: str
) -> None:
    with pytest.raises(NeedsAuthentication, match="jlr cannot ask: password of ada@dgx") as asked:
        elevation.prepare(sudo_host(password), SCRIPT, NEVER)
    assert (asked.value.hint or "").startswith("run it in a terminal; or ")


def test_a_user_whom_sudo_refuses_after_the_password_is_told_so(
    elevation: Elevation, password: str
) -> None:
    answers = [ASKS, REFUSES]
    host = ScriptHost(lambda _: answers.pop(0))
    with pytest.raises(EngineNotPermitted):
        elevation.prepare(host, SCRIPT, FakePerson(password))


def test_a_password_that_is_wrong_by_now_is_dropped_everywhere(
    elevation: Elevation, keychain: MemoryKeychain, password: str
) -> None:
    keychain.set(ADA, password)
    elevation.prepare(sudo_host(password), SCRIPT, NEVER)
    elevation.refused()
    person = FakePerson(f"new-{password}")
    elevation.prepare(sudo_host(f"new-{password}"), SCRIPT, person)
    assert keychain.get(ADA) != password
    assert elevation.password_for(SCRIPT.encode()) == f"new-{password}"


def test_a_log_with_the_words_of_sudo_does_not_revoke_the_right_password(
    elevation: Elevation, keychain: MemoryKeychain, password: str
) -> None:
    """`jlr logs` of a container that prints `sudo: 3 incorrect password attempts`."""
    keychain.set(ADA, password)
    host = sudo_host(password)
    elevation.prepare(host, SCRIPT, NEVER)
    for _ in range(2):
        elevation.refused()
        elevation.prepare(host, SCRIPT, NEVER)
    assert elevation.password_for(SCRIPT.encode()) == password
    assert keychain.get(ADA) == password
    tried = len(host.tried)
    elevation.prepare(host, SCRIPT, NEVER)
    assert len(host.tried) == tried, "it is tested once for each doubt"


def test_a_mere_look_uses_the_keychain_once_and_never_asks(
    elevation: Elevation, keychain: MemoryKeychain, password: str
) -> None:
    host, person = sudo_host(password), FakePerson(password)
    for _ in range(2):
        elevation.prepare(host, LOOKS_UP, person)
    assert (person.questions, len(host.tried)) == ([], 1)
    keychain.set(ADA, password)
    elevation.refused()
    elevation.prepare(host, LOOKS_UP, person)
    assert elevation.password_for(LOOKS_UP.encode()) == password


class Served(FakeConnection):
    """A connection whose scripts run in a session that a process of some name began."""

    def __init__(self, program: Path, between: str) -> None:
        super().__init__()
        self.gone.wait = lambda timeout=None: False  # type: ignore[method-assign]
        self.ran = False
        line = f'{between} setsid sh -c "$0"; echo; echo over; cat; :'
        words = (str(program), "-c", line)
        self.start: Callable[[str], subprocess.Popen[bytes]] = lambda script: subprocess.Popen(
            (*words, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def execute(self, script: bytes, output: Output, **options: Any) -> int:
        self.process = self.start(script.decode())
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()) != b"over\n":
            output("stdout", line)
        self.ran = True
        return 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def serve(name: str, between: str = "") -> Served:
        program = tmp_path / name
        if not program.exists():
            shutil.copy("/bin/sh", program)
        made.append(Served(program, between))
        return made[-1]

    yield serve
    for one in made:
        one.process.kill()
        one.process.communicate()


def test_only_the_sshd_of_the_last_connection_is_ended(served: Callable[..., Served]) -> None:
    first, other, second, third = (served("sshd-session") for _ in range(4))
    HostSide("elsewhere").renew(other)
    until(lambda: other.ran, "another link's connection")
    side = HostSide("dgx")
    side.renew(first)
    until(lambda: first.ran, "the first connection")
    assert first.process.poll() is None
    side.renew(second)
    until(lambda: second.ran, "the second connection")
    assert first.process.poll() is not None
    side.renew(third)
    until(lambda: third.ran, "the third connection")
    assert second.process.poll() is not None
    assert other.process.poll() is None


# Runs the rest as another server does that a person has started in a terminal over SSH.
BY_HAND = "python3 -c 'import subprocess, sys; subprocess.call(sys.argv[1:])'"


@pytest.mark.parametrize(("name", "between"), [("python3", ""), ("sshd", BY_HAND)])
def test_a_server_that_may_serve_others_too_stays(
    served: Callable[..., Served], name: str, between: str
) -> None:
    side = HostSide("dgx")
    first, second = served(name, between), served(name, between)
    for number, one in enumerate((first, second)):
        side.renew(one)
        until(lambda one=one: one.ran, f"connection {number}")  # type: ignore[misc]
    assert first.process.poll() is None


MARK = "jlr-mark"
SOCKET = "unix:///run/user/1000/docker.sock"
FILES = {
    "bash": ".bash_profile",
    "dash": ".profile",
    "fish": ".config/fish/config.fish",
    "tcsh": ".profile",  # `sh` is asked in its place
    "zsh": ".zshrc",
}


def asked(home: Path, shell: str, text: str = "") -> LoginShell:
    """Return the answer of a shell whose startup file has that text."""
    file = home / FILES[shell]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    program = shutil.which(shell) or pytest.skip(f"`{shell}` is not installed")
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "SHELL": program}
    done = attempt("/bin/sh", "-s", stdin=question(MARK), env=variables)
    return read(Completed(done.status, done.stdout, done.stderr), MARK)


@pytest.mark.parametrize("shell", FILES)
def test_what_only_a_login_shell_has_is_found_under_each_shell(shell: str, tmp_path: Path) -> None:
    folder = tmp_path / "a site's"
    folder.mkdir()
    (folder / "apptainer").touch(mode=0o755)
    text = f'printf "no newline"; export PATH="$PATH:{folder}" DOCKER_HOST={SOCKET}\n'
    if shell == "fish":
        text = f'printf noise; set -gx PATH $PATH "{folder}"; set -gx DOCKER_HOST {SOCKET}\n'
    found = asked(tmp_path, shell, text)
    assert found.finds == (f"{folder}/apptainer",)
    assert (found.docker_host, found.trouble) == (SOCKET, "")
    told = attempt("sh", "-s", stdin=f"{found.head()}command -v apptainer; printenv DOCKER_HOST\n")
    assert told.stdout == f"{folder}/apptainer\n{SOCKET}\n", told


def login_host(*answers: str | JlrError) -> ScriptHost:
    left = list(answers)

    def answer(script: str) -> Completed:
        told = left.pop(0)
        if isinstance(told, JlrError):
            raise told
        (mark,) = set(re.findall(r"jlr-[0-9a-f]{24}", script))
        return Completed(0, told.replace(MARK, mark), "")

    return ScriptHost(answer)


HELPS = f"/bin/sh\n/bin\n\n\n{MARK}\n/bin:/opt\n\n/opt/docker\n{MARK}\n"


def test_it_is_asked_once_and_the_next_link_asks_before_its_first_script(tmp_path: Path) -> None:
    look = LoginLook(tmp_path / "needed")
    host = login_host(LinkLost("gone"), HELPS)
    look.connected(host)  # no link before has found that the host needs it
    assert host.tried == []
    with pytest.raises(LinkLost):  # which is no answer
        look.look(host)
    assert [look.look(host)[1] for _ in range(2)] == [True, False]
    assert look.head() == b"PATH=${PATH:+$PATH:}/opt; export PATH\n"
    later = LoginLook(tmp_path / "needed")
    later.connected(login_host(HELPS))
    assert later.head() == look.head()
    needless = LoginLook(tmp_path / "needed")
    needless.connected(login_host(HELPS.replace("/opt/docker\n", "")))
    assert needless.head() == b""
    assert not (tmp_path / "needed").exists()
