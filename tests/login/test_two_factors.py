"""Two factors: asked for once; a lost connection waits for a person, in peace, on its port."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.login.parts import (
    PASSWORD,
    Terminal,
    at_terminal,
    connections,
    failures,
    listed,
    log_in,
    logins,
    started,
    wait_for_state,
    without_terminal,
)
from tests.sessions import parts
from tests.sessions.parts import failed


def factors(codes: Iterator[str]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return what is asked and what is answered."""
    return ("Password: ", PASSWORD), ("Verification code: ", next(codes))


def test_ssh_asks_once_for_itself_a_copy_and_the_page(
    laptop: Laptop, two: SSHServer, codes: Iterator[str]
) -> None:
    before = logins(two)
    config = laptop.folder / "editors_config"
    config.write_text(laptop.jlr("config", "ssh").stdout, encoding="utf-8")
    ssh = ("ssh", "-F", str(config), "two.jlr")
    with laptop.terminal(*ssh, "echo in $((1))") as spawned:
        terminal = Terminal(spawned)
        for prompt, line in factors(codes):
            terminal.answers(prompt, line)
        terminal.sees("in 1")
        assert terminal.ends() == 0
    for _ in range(3):
        assert laptop.run(*ssh, "echo again").stdout == "again\n"
    assert laptop.jlr("cp", str(config), "two:copied").status == 0
    started(laptop, "two")
    assert logins(two) - before == 1


def test_after_a_drop_the_link_waits_and_tries_nothing(
    laptop: Laptop, two: SSHServer, codes: Iterator[str]
) -> None:
    log_in(laptop, "two", *factors(codes))
    port, before, refused = listed(laptop)["local_port"], connections(two), failures(two)
    logged = len(two.log_text())
    two.drop_connections()
    # A list that comes during the attempt makes one, too.
    left = "Connection closed by authenticating user"
    wait_until(lambda: left in two.log_text()[logged:], "the link's attempt")
    wait_for_state(laptop, "needs-auth")
    limit = time.monotonic() + 3
    while time.monotonic() < limit:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as request:
            request.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert listed(laptop)["state"] == "needs-auth"
    # The link found out with one attempt; the page and the lists made none.
    assert connections(two) - before == 1
    assert failures(two) == refused
    shown = without_terminal(laptop, "list")
    assert "needs-auth" in shown.stdout
    assert "`two` waits for you: run `jlr list two/one` in a terminal" in shown.stderr
    failed(without_terminal(laptop, "url"), 4, "jlr cannot ask", "in a terminal")
    with at_terminal(laptop, "list", "two/one") as terminal:
        for prompt, line in factors(codes):
            terminal.answers(prompt, line)
        assert terminal.ends() == 0
    assert "state:     up" in terminal.text
    assert listed(laptop)["local_port"] == port


def test_a_code_that_was_used_is_refused_and_the_next_one_gets_in(
    laptop: Laptop, two: SSHServer, codes: Iterator[str]
) -> None:
    password, code = factors(codes)
    log_in(laptop, "two", password, code)
    assert laptop.jlr("disconnect", "two").status == 0
    log_in(laptop, "two", password, code, ("the server refused that", PASSWORD), factors(codes)[1])


def test_a_running_kernel_answers_again_on_its_port(
    laptop: Laptop, two: SSHServer, codes: Iterator[str], container: ContainerFactory
) -> None:
    here = container()
    with at_terminal(laptop, "start", "two", here.name, "--no-browser") as terminal:
        for prompt, line in factors(codes):
            terminal.answers(prompt, line)
        assert terminal.ends() == 0, terminal.text
    session = parts.started(laptop, here, host="two")
    with session.notebook("work.ipynb") as kernel:
        kernel.run("answer = 42")
        two.drop_connections()
        wait_for_state(laptop, "needs-auth")
        with at_terminal(laptop, "url") as terminal:
            for prompt, line in factors(codes):
                terminal.answers(prompt, line)
            assert terminal.ends() == 0
        assert session.url in terminal.text
        with kernel.reached_anew() as again:
            assert again.run("answer") == "42"
