"""`sudo` with a password: asked for once, and known to the link alone."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.engines.conftest import IMAGE, EnginesHost, sudo_host
from tests.engines.parts import told
from tests.gpus.stand_in import Gpus
from tests.images.parts import USER, missing_programs, running_registry, unlocked_keychain
from tests.lab import podman
from tests.lab.accounts import logging_in_with
from tests.lab.containers import ContainerFactory
from tests.lab.engine import GROUP, Engine
from tests.lab.laptop import Laptop
from tests.lab.place import Say, private_folder
from tests.lab.programs import SYSTEM_PATH, Result, run, wait_until
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.login.keychain import SecretService
from tests.login.parts import Terminal, at_terminal, disconnect, without_terminal
from tests.long import LONG
from tests.mounts.parts import remember_session
from tests.sessions.parts import link_all_but

# What a shell, a terminal or `printf` could take for something else.
PASSWORD = 'pass\'w\\0123 "$HOME" %s ü'
ASKED = "for `sudo docker`: "
KEEP = "(y/N) "
BY_SUDO = ("--runtime", "docker", "--sudo")


@pytest.fixture(scope="module")
def host(engine: Engine, keys: Keys, say: Say) -> Iterator[EnginesHost]:
    """A host whose `sudo` wants the user's password."""
    with sudo_host(podman.WITH_PASSWORD, PASSWORD, engine, keys, say) as made:
        yield made


@pytest.fixture(scope="module")
def owner(host: EnginesHost, keys: Keys) -> Iterator[Laptop]:
    """A laptop that has a session there, and whose link was told the password."""
    with new_laptop(host.server, host.account, keys) as laptop:
        yield laptop


@pytest.fixture(scope="module")
def session(owner: Laptop, host: EnginesHost) -> Iterator[str]:
    """The session; its start is asked for the password, once."""
    name = f"lab-{secrets.token_hex(4)}"
    start = ("start", "lab", name, "--image", IMAGE, "--no-browser", *BY_SUDO)
    try:
        with at_terminal(owner, *start) as terminal:
            terminal.answers(ASKED, PASSWORD)
            assert terminal.ends() == 0, terminal.text
        assert PASSWORD not in terminal.text
        assert ASKED not in terminal.text.partition(ASKED)[2]
        yield name
    finally:
        host.remove("docker", name)


@pytest.fixture
def newcomer(host: EnginesHost, keys: Keys) -> Iterator[Laptop]:
    """A laptop whose link does not know the password yet."""
    with new_laptop(host.server, host.account, keys) as laptop:
        yield laptop


def images(laptop: Laptop) -> Result:
    """Run a command that needs `sudo`, without a terminal to ask at."""
    return without_terminal(laptop, "image", "list", "lab", *BY_SUDO, "--json")


def test_a_session_is_started_and_its_page_is_reached(owner: Laptop, session: str) -> None:
    status = told(owner, "list", session, "--json")
    assert (status["state"], status["runtime"]) == ("up", "sudo docker")
    url = without_terminal(owner, "url", session).stdout.strip()
    assert url
    with urlopen(url) as page:
        assert b"JupyterLab" in page.read()


def test_commands_are_shown_as_a_person_can_type_them(owner: Laptop, session: str) -> None:
    words = ("start", "lab", f"{session}-2", "--image", IMAGE, "--dry-run", *BY_SUDO)
    plan = without_terminal(owner, *words).stdout
    assert plan.startswith("sudo docker network create ")
    assert "\nsudo docker create " in plan
    assert plan.endswith(f"\nsudo docker start {session}-2\n")
    seen = without_terminal(owner, "--verbose", "image", "list", "lab", *BY_SUDO)
    assert "(sudo docker image ls " in seen.stderr, seen
    assert "sudo -A" not in seen.stderr


@pytest.mark.parametrize("way", [LONG("shell"), "kept", "job"])
def test_a_terminal_asks_nothing(owner: Laptop, session: str, way: str) -> None:
    words = {
        "shell": ("shell", session),
        "kept": ("shell", session, "--keep"),
        "job": ("run", "lab", "--image", "lab/plain", "-it", "--rm", *BY_SUDO),
    }[way]
    with at_terminal(owner, *words, "--", "sh", "-c", "tty; read x; echo got $x; exit 5") as shown:
        shown.sees("/dev/pts/")
        shown.answers("", "a line")
        shown.sees("got a line")
        assert shown.ends() == 5
    assert "jlr-" not in shown.text
    assert "\\0" not in shown.text


def test_jobs_run_in_containers_of_their_own_and_in_the_sessions(
    owner: Laptop, session: str
) -> None:
    words = ("run", "lab", "--image", "lab/plain", "--gpus", "none", *BY_SUDO)
    alone = without_terminal(owner, *words, "--rm", "--", "sh", "-c", "echo out; exit 3")
    assert (alone.status, alone.stdout) == (3, "out\n"), alone
    beside = without_terminal(
        owner, "run", "lab", "--in", session, "--", "sh", "-c", "echo in; exit 4"
    )
    assert (beside.status, beside.stdout) == (4, "in\n"), beside
    # `sudo` asks for nothing on stdin
    given = owner.jlr(*words, "-i", "--rm", "--", "sh", "-c", "cat; exit 5", stdin="a\nb")
    assert (given.status, given.stdout) == (5, "a\nb"), given


@pytest.mark.long
def test_a_registrys_key_has_stdin_for_itself(
    newcomer: Laptop, engine: Engine, host: EnginesHost
) -> None:
    if reasons := missing_programs():
        pytest.skip("; ".join(reasons))
    with running_registry(engine) as registry, unlocked_keychain(newcomer):
        asked(newcomer, PASSWORD)
        image = registry.push_small("me/behind-sudo:1")
        login = (
            "image",
            "login",
            "lab",
            registry.name,
            "--username",
            USER,
            "--password-stdin",
            *BY_SUDO,
        )
        newcomer.jlr(*login, stdin=registry.key).checked()
        newcomer.jlr("image", "pull", "lab", image, *BY_SUDO).checked()
        host.engine.try_docker("rmi", "--force", image)


def test_a_link_that_comes_back_still_knows_it(
    owner: Laptop, session: str, host: EnginesHost
) -> None:
    host.server.drop_connections()
    wait_until(
        lambda: bool(told(owner, "list", session, "--json")["state"] == "up"), "the link", 60
    )
    assert images(owner).status == 0


def test_it_is_found_nowhere_while_a_command_runs(
    owner: Laptop, session: str, host: EnginesHost
) -> None:
    words = ("--verbose", "shell", session, "--", "sh", "-c", "echo $((40 + 2)) is ready; cat")
    with at_terminal(owner, *words) as shell:
        shell.sees("42 is ready")
        there = [
            child for sshd in host.server.sessions() for child in sshd.children(recursive=True)
        ]
        assert {"sh", "sudo", "docker"} <= {process.name() for process in there}
        for process in (*there, *host.account.processes(), *owner.processes()):
            with suppress(psutil.Error):  # it has just ended
                assert not leaked(" ".join(process.cmdline())), process
                assert not leaked(str(process.environ())), process
        for folder in (host.account.home, owner.folder, host.server.folder, Path("/dev/shm")):
            assert not [path for path in files(folder) if LEAKS.search(path.read_bytes())]
        shell.interrupts()
        shell.ends()
    assert not leaked(shell.text)
    verbose = without_terminal(owner, "--verbose", "image", "list", "lab", *BY_SUDO)
    assert "docker image ls" in verbose.stderr
    assert not leaked(str(verbose))


LEAKS = re.compile(rb"""pass'w|HOME" %s|\\0160\\0141\\0163\\0163""")


def leaked(text: str) -> bool:
    """Return whether a text contains the password or a good part of it."""
    return bool(LEAKS.search(text.encode()))


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and os.access(path, os.R_OK))


def test_a_wrong_password_is_asked_for_again_and_one_that_was_changed(
    newcomer: Laptop, host: EnginesHost
) -> None:
    with at_terminal(newcomer, "--no-remember", "image", "list", "lab", *BY_SUDO) as terminal:
        terminal.answers(ASKED, "wrong")
        terminal.sees("`sudo` refused that password")
        terminal.answers(ASKED, PASSWORD)
        assert terminal.ends() == 0, terminal.text
    assert images(newcomer).status == 0
    host.account.set_password("another one")
    try:
        assert images(newcomer).status != 0
        asked(newcomer, "another one")
        assert images(newcomer).status == 0
    finally:
        host.account.set_password(PASSWORD)


def test_without_a_terminal_none_is_asked_for_and_three_wrong_ones_end_with_a_remedy(
    newcomer: Laptop,
) -> None:
    for words in (
        ("image", "list", "lab", *BY_SUDO),
        ("--no-input", "image", "list", "lab", *BY_SUDO),
    ):
        without_terminal(newcomer, *words).checked(
            4, "a password is needed, and jlr cannot ask", "NOPASSWD: /usr/bin/docker"
        )
    with at_terminal(newcomer, "image", "list", "lab", *BY_SUDO) as terminal:
        for wrong in ("wrong", "still wrong", "and again"):
            terminal.answers(ASKED, wrong)
        assert terminal.ends() == 4, terminal.text
    assert "`sudo` refused every password" in terminal.text
    assert "NOPASSWD: /usr/bin/docker" in terminal.text


def test_it_can_be_kept_in_the_keychain_and_forgotten(newcomer: Laptop, host: EnginesHost) -> None:
    account = f"sudo-password {host.account.name}@[127.0.0.1]:{host.server.port}"
    with SecretService(newcomer) as keychain:
        with at_terminal(newcomer, "image", "list", "lab", *BY_SUDO) as terminal:
            terminal.answers(ASKED, PASSWORD)
            terminal.sees("keep the sudo password of")
            terminal.answers(KEEP, "y")
            assert terminal.ends() == 0, terminal.text
        assert keychain.contents() == {account: PASSWORD}
        disconnect(newcomer, "lab")
        assert images(newcomer).status == 0
        assert newcomer.jlr("disconnect", "lab", "--forget").stdout.endswith(
            f"\nforgot the {account}\n"
        )
        disconnect(newcomer, "lab")
        assert images(newcomer).status == 4


def test_where_nothing_else_works_it_is_found_and_asked_for(
    host: EnginesHost, engine: Engine, keys: Keys
) -> None:
    """It is only tried for members of its group, and in any language."""
    run("usermod", "--gid", "nogroup", "--append", "--groups", "sudo", host.account.name)
    path = host.account.home / "programs"
    path.mkdir()
    link_all_but(["podman"], path)
    variables = {"PATH": str(path), "LANG": "C.UTF-8", "LANGUAGE": "de"}
    try:
        with (
            running_sshd(engine, keys, environment=variables) as server,
            new_laptop(server, host.account, keys) as laptop,
            logging_in_with(host.account, path),
        ):
            looked = without_terminal(laptop, "list", "lab", "--json")
            assert "jlr cannot ask" not in looked.stderr, looked
            with at_terminal(laptop, "image", "list", "lab") as terminal:
                terminal.answers(ASKED, PASSWORD)
                assert terminal.ends() == 0, terminal.text
            assert without_terminal(laptop, "image", "list", "lab").status == 0
    finally:
        run("gpasswd", "--delete", host.account.name, "sudo")
        run("usermod", "--gid", GROUP, host.account.name)


def test_containers_on_gpus_are_named_without_a_question(
    host: EnginesHost, engine: Engine, keys: Keys
) -> None:
    run("usermod", "--gid", "nogroup", host.account.name)
    containers = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    try:
        with private_folder("gpus") as folder:
            variables = {"PATH": f"{folder}:{SYSTEM_PATH}"}
            gpus = Gpus(folder)
            gpus.install(1)
            inside = containers("lab/plain")
            gpus.occupy(0, int(inside.inspect("{{.State.Pid}}")))
            with (
                running_sshd(engine, keys, environment=variables) as server,
                new_laptop(server, host.account, keys) as laptop,
                SecretService(laptop),
            ):
                remember_session(laptop, inside.name, "sudo docker")
                assert on_gpus(laptop) == [inside.inspect("{{.Id}}")[:12]]
                with at_terminal(laptop, "image", "list", "lab", *BY_SUDO) as terminal:
                    terminal.answers(ASKED, PASSWORD)
                    terminal.answers(KEEP, "y")
                    assert terminal.ends() == 0, terminal.text
                assert on_gpus(laptop) == [inside.name]
                assert watched_gpus(laptop) == [inside.name]
                disconnect(laptop, "lab")  # the next link finds it in the keychain
                assert on_gpus(laptop) == [inside.name]
                name = containers.name()  # a job that waits on the host knows it, too
                wanted = ("--name", name, "--gpus", "auto", "--wait", "--detach", *BY_SUDO)
                words = ("run", "lab", "--image", "lab/plain", *wanted, "--", "sh", "-c", "exit 3")
                assert without_terminal(laptop, *words).status == 0
                disconnect(laptop, "lab")
                gpus.free(0)
                without_terminal(laptop, "job", "attach", name).checked(3)
    finally:
        containers.remove_all()
        run("usermod", "--gid", GROUP, host.account.name)


def on_gpus(laptop: Laptop) -> list[str | None]:
    """Return the containers of the processes on the first GPU."""
    looked = without_terminal(laptop, "gpus", "lab", "--json")
    assert (looked.status, looked.stderr) == (0, ""), looked
    return containers_in(looked.stdout)


def watched_gpus(laptop: Laptop) -> list[str | None]:
    """Return the same from the live view."""
    with laptop.spawn("gpus", "lab", "--watch", "--json") as watching:
        assert watching.stdout is not None
        line = watching.stdout.readline()
        watching.terminate()
    return containers_in(line)


def containers_in(told: str) -> list[str | None]:
    return [process["container"] for process in json.loads(told)["gpus"][0]["processes"]]


def asked(laptop: Laptop, password: str) -> Terminal:
    """List the images in a terminal that asks for the password only."""
    with at_terminal(laptop, "--no-remember", "image", "list", "lab", *BY_SUDO) as terminal:
        terminal.answers(ASKED, password)
        assert terminal.ends() == 0, terminal.text
    return terminal
