"""`jlr shell` without a terminal: as `docker exec -i`, byte for byte."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pexpect
import pytest

from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.programs import PATIENCE, wait_until
from tests.lab.remote_host import Keys
from tests.mounts.parts import remember_session
from tests.sessions.parts import started
from tests.shell.parts import running


def jlr_shell(
    owner: Laptop, session: str, *command: str, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    named = () if session == "latest" else (session,)
    argv = (str(PROGRAMS / "jlr"), "shell", *named, *(("--", *command) if command else ()))
    return subprocess.run(
        argv, input=given, capture_output=True, env=owner.environment, timeout=60, check=False
    )


@pytest.mark.parametrize("session", ["latest", "lab/bare"])
def test_bytes_and_arguments_go_as_they_are_and_a_shell_reads_what_is_given(
    owner: Laptop, session: str
) -> None:
    data = os.urandom(300_001)
    jlr_shell(owner, session, "true")  # later ones say nothing of a connection
    done = jlr_shell(owner, session, "sh", "-c", "cat; echo oops >&2; exit 7", given=data)
    assert (done.returncode, done.stderr) == (7, b"oops\n")
    assert done.stdout == data
    words = ("--help", "two  words", 'it\'s "so"', "$(id) `id` $HOME", "one\ntwo", "--", "é", "")
    done = jlr_shell(owner, session, "printf", "[%s]", *words)
    assert done.stdout.decode() == "".join(f"[{word}]" for word in words)
    done = jlr_shell(owner, session, given=b"cd /var/tmp\npwd\nexit 5\n")
    assert (done.returncode, done.stdout) == (5, b"/var/tmp\n")


def test_the_folder_and_the_user_are_the_requested_ones(owner: Laptop, account: Account) -> None:
    asked = ("-w", "/etc", "-u", "1234:99")
    done = owner.jlr("shell", *asked, "--", "sh", "-c", "pwd; id -u; id -g", stdin="")
    assert done.stdout == "/etc\n1234\n99\n"
    done = owner.jlr("shell", "lab/bare", "-w", "/etc", "--", "pwd", stdin="")
    assert done.stdout == "/etc\n"
    done = owner.jlr("shell", "lab/bare", "-w", "~/.", "--", "pwd", stdin="")
    assert done.stdout == f"{account.home}\n"
    assert owner.jlr("shell", "lab/bare", "-u", "root", stdin="").status == 2


@pytest.fixture
def german(laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys) -> Laptop:
    """A laptop that sends its locale to the host `accepts`, and to `refuses`, as ssh does."""
    sends = ("SendEnv LANG LC_*", "SetEnv LC_FIXED=here")
    for name, options in (("accepts", ("AcceptEnv LANG LC_*",)), ("refuses", ())):
        laptop.add_host(name, another_sshd(*options), account, key=keys.private, options=sends)
        remember_session(laptop, f"bare-{name}", "none", name)
    laptop.environment |= {"LANG": "C.UTF-8", "LC_OWN": "yes", "LCX": "no"}
    return laptop


@pytest.mark.parametrize("host", ["accepts", "refuses"])
def test_the_locale_is_sent_as_by_ssh(german: Laptop, host: str, account: Account) -> None:
    (account.home / "ü").touch()
    shown = "echo [$LANG $LC_OWN $LC_FIXED $LCX]; ls -1d --quoting-style=shell-escape -- *"
    theirs = german.ssh(host, shown).stdout
    assert ("[C.UTF-8 yes here ]" in theirs, "\nü\n" in theirs) == (host == "accepts",) * 2
    for place in (host, f"{host}/bare-{host}"):
        assert german.jlr("shell", place, "--", "sh", "-c", shown).stdout == theirs
        with german.terminal("jlr", "shell", place, "--", "sh", "-c", shown) as terminal:
            terminal.expect(pexpect.EOF)
            assert terminal.before is not None
            assert theirs in terminal.before.replace("\r\n", "\n")


def test_a_shell_that_is_kept_has_the_locale_too(german: Laptop) -> None:
    argv = ("jlr", "shell", "accepts", "--keep", "--", "sh", "-c", "echo [ü $LANG]; read line")
    with german.terminal(*argv) as terminal:
        terminal.expect_exact("[ü C.UTF-8]")  # tmux shows what it takes for no letter as `_`
        terminal.sendline()
        terminal.expect(pexpect.EOF)


def test_a_forced_command_that_runs_what_was_asked_for_is_no_obstacle(
    laptop: Laptop,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
    container: ContainerFactory,
    tmp_path: Path,
) -> None:
    server = another_sshd("ForceCommand exec $SSH_ORIGINAL_COMMAND")
    laptop.add_host("forced", server, account, key=keys.private)
    assert laptop.jlr("shell", "forced", "--", "echo", "it's  here").stdout == "it's  here\n"
    (tmp_path / "sent").write_text("text")
    assert laptop.jlr("cp", str(tmp_path / "sent"), "forced:forced").status == 0
    assert (account.home / "forced").read_text() == "text"
    with laptop.terminal("jlr", "shell", "forced", "--", "echo", "here") as terminal:
        terminal.expect_exact("its own command (`ForceCommand`)")
    name = container.name()
    by_relay = ("--image", "lab/jupyter", "--network", "bridge")
    assert started(laptop, name, *by_relay, host="forced").ask("api/status")["kernels"] == 0


def test_any_container_and_the_host_itself_need_no_session(
    account: Account, inside: Container, laptop: Laptop
) -> None:
    done = laptop.jlr("shell", f"lab/{inside.name}", "--", "cat", "/etc/hostname", stdin="")
    hostname = inside.engine.docker("exec", inside.name, "hostname").strip()
    assert (done.status, done.stdout.strip()) == (0, hostname)
    done = laptop.jlr("shell", "lab", "--", "sh", "-c", "id -un; pwd; exit 3", stdin="")
    assert (done.status, done.stdout) == (3, f"{account.name}\n{account.home}\n")
    assert laptop.jlr("list", "--json").stdout == "[]\n", "no record is made"
    for where, told in (
        ("lab/no-such", "neither a session nor a container `no-such` on `lab`"),
        ("no-such.invalid", "`no-such.invalid` is neither a host nor a session"),
        ("lba", "did you mean `lab`?"),
    ):
        failed = laptop.jlr("shell", where, "--", "true", stdin="")
        assert failed.status == 6, failed
        assert told in failed.stderr


def test_git_clones_and_pushes_over_it(account: Account, laptop: Laptop, tmp_path: Path) -> None:
    """Git gives the remote command as one word, and asks first which ssh this is."""
    there, here = account.home / "it's a repo", tmp_path / "here"

    def git(*words: str) -> str:
        ours = {"GIT_SSH_COMMAND": f"{PROGRAMS / 'jlr'} shell", "GIT_CONFIG_COUNT": "0"}
        argv = ("git", "-c", "user.name=a", "-c", "user.email=a@example", *words)
        environment = laptop.environment | ours
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    laptop.jlr("shell", "lab", f"git init --quiet --bare '{account.home}/it'\\''s a repo'")
    git("clone", "--quiet", f"lab:{there}", str(here))
    (here / "notes").write_bytes(os.urandom(100_000))
    git("-C", str(here), "add", "notes")
    git("-C", str(here), "commit", "--quiet", "--message", "one")
    git("-C", str(here), "push", "--quiet", "origin", "HEAD:main")
    assert git("ls-remote", f"lab:{there}", "main").split()[0] in git("-C", str(here), "log")


def test_an_interrupted_command_ends_in_the_container_too(owner: Laptop, inside: Container) -> None:
    command = owner.spawn("shell", "--", "sleep", "614")
    wait_until(lambda: running(inside, "sleep 614"), "the command's start")
    command.terminate()
    assert command.wait(PATIENCE) == 143
    wait_until(lambda: not running(inside, "sleep 614"), "the end of the command")
    command.communicate()


def test_a_file_gets_all_behind_what_it_has(owner: Laptop, tmp_path: Path) -> None:
    """The link writes it by itself, as the command's other streams."""
    data, file = os.urandom(3_000_000), tmp_path / "file"
    (tmp_path / "given").write_bytes(data)
    for stdout in ("before", ""):
        with (tmp_path / "given").open("rb") as given, file.open("ab") as kept:
            kept.write(stdout.encode())
            kept.flush()
            argv = (str(PROGRAMS / "jlr"), "shell", "--", "cat")
            subprocess.run(
                argv, stdin=given, stdout=kept, env=owner.environment, timeout=60, check=True
            )
    assert file.read_bytes() == b"before" + data + data


def test_a_reader_that_has_enough_ends_the_command(owner: Laptop, inside: Container) -> None:
    command = owner.spawn("shell", "--", "sh", "-c", "exec yes 7191")
    assert command.stdout is not None
    assert command.stdout.readline() == "7191\n"
    command.stdout.close()
    assert command.wait(PATIENCE) == 1
    wait_until(lambda: not running(inside, "yes 7191"), "the end of the command")
