"""Servers that were started by hand: on another port, with a password, on a socket."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

import pytest

from jlremote.place.host.addresses import own_address
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.link.servers import PROGRAM, start_inside
from tests.long import LONG
from tests.sessions.parts import SERVER, Session, failed, started

IPV6 = ("--sysctl", "net.ipv6.conf.all.disable_ipv6=0")
PASSWORD = "from jupyter_server.auth import passwd; print(passwd('secret'))"
# Wait until a server answers.
ANSWERS = """
import sys, time, urllib.request
while True:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/theirs/api")
    except OSError:
        time.sleep(0.05)
    else:
        break
"""
END = r"""
for file in ~/.local/share/jupyter/runtime/jpserver-*.json; do
  pid=${file##*-}; kill -9 ${pid%.json}
done; :"""


def run_by_hand(here: Container, port: int, *options: str) -> None:
    """Start a server in a container, as a person does in a shell there, and wait until it is up."""
    server = (*SERVER, f"--port={port}", *options)
    here.engine.docker("exec", "--detach", here.name, *server)
    here.execute("python3", "-c", ANSWERS, str(port), timeout=90)


def imitate_by_hand(here: Container, port: int) -> None:
    """Start what looks like such a server, in a tenth of the time."""
    here.execute("sh", "-c", "rm -f ~/.local/share/jupyter/runtime/jpserver-*")
    place = ("DIRECTORY=/root/.local/share/jupyter", "BIND=0.0.0.0", f"PORT={port}")
    options = (f"--env={variable}" for variable in place)
    server = ("python3", "-c", PROGRAM, "theirs")
    here.engine.docker("exec", "--detach", *options, here.name, *server)
    files = "ls ~/.local/share/jupyter/runtime/jpserver-*; :"
    wait_until(lambda: here.execute("sh", "-c", files) != "", "its start")


def end_by_hand(here: Container) -> None:
    """End what was started by hand, the hard way."""
    here.execute("sh", "-c", END)


def leads_to(port: int, path: str) -> bool:
    """Return whether somebody answers there who knows the path; asked without a token."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def told(laptop: Laptop, *words: str) -> Session:
    """Return the only session, as a command tells it; it must be up."""
    result = laptop.jlr(*words, "--json")
    assert result.status == 0, result
    report = json.loads(result.stdout)
    [report] = report if isinstance(report, list) else [report]
    assert report["state"] == "up", report
    return Session(laptop, report)


def test_a_server_that_was_started_again_on_another_port_is_followed(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    start_inside(here, 8888)
    session = started(laptop, here)
    session.ask("api/shutdown", {})
    run_by_hand(here, 9999, "--ip=0.0.0.0")
    # By the forward alone: a page that is still open finds it.
    wait_until(lambda: leads_to(session.port, "/theirs/api"), "the second's answer")
    second = told(laptop, "list", here.name)
    assert (second.port, second.base.split("/")[1]) == (session.port, "theirs")
    assert second.token != session.token
    with second.notebook("again.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"

    end_by_hand(here)
    imitate_by_hand(here, 9998)
    opened = laptop.jlr("open", here.name, "--no-browser")
    assert opened.status == 0, opened
    third = told(laptop, "list")
    assert opened.stdout.strip() == third.url
    assert third.ask("api/kernels") == []
    assert third.token != second.token

    end_by_hand(here)
    imitate_by_hand(here, 9998)  # on the same port, with another token
    assert told(laptop, "list").ask("api/kernels") == []

    end_by_hand(here)
    run_by_hand(here, 9997, "--ip=0.0.0.0", "--IdentityProvider.token=")
    failed(laptop.jlr("open", here.name, "--no-browser"), 1, "jupyter-dead", "jlr start lab")
    assert not leads_to(session.port, "/theirs/api")
    failed(laptop.jlr("start", "lab", here.name, "--no-browser"), 1, "every user of `lab`")


@pytest.mark.parametrize(
    ("options", "ip"),
    [LONG((), "127.0.0.1"), (IPV6, "::1"), LONG(IPV6, "::")],
    ids=["loopback", "IPv6 loopback", "IPv6 only"],
)
def test_a_server_on_its_containers_loopback_is_used_as_it_is(
    laptop: Laptop, container: ContainerFactory, options: tuple[str, ...], ip: str
) -> None:
    here = container("lab/jupyter", *SERVER, f"--ip={ip}", options=options)
    here.await_output("is running at")
    session = started(laptop, here)
    assert session.base.endswith("/theirs/")
    born = session.born()
    with session.notebook("here.ipynb") as kernel:
        assert len(kernel.run("print('x' * 200_000)")) == 200_001
    for words in (("list", here.name), ("list",)):
        assert told(laptop, *words).url == session.url
    for words in (("url",), ("open", "--no-browser")):
        assert laptop.jlr(*words).stdout.strip() == session.url
    assert laptop.jlr("open").status == 0
    wait_until(lambda: bool(laptop.opened()), "the browser's start")
    redirect = Path(unquote(urlsplit(laptop.opened()[-1]).path)).read_text()
    own = f"http://{own_address(session.port)}:{session.port}/theirs/"
    assert f'content="0;url={own}' in redirect
    with urlopen(own + "api", timeout=30) as answer:
        assert "version" in json.load(answer)
    assert "/theirs/" in laptop.jlr("logs", here.name).stdout
    assert "left Jupyter running" in laptop.jlr("stop").stdout
    assert started(laptop, here).born() == born


def test_a_server_with_a_password_asks_for_it_in_the_browser(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    hashed = here.execute("python3", "-c", PASSWORD).strip()
    run_by_hand(here, 8888, "--ip=0.0.0.0", f"--PasswordIdentityProvider.hashed_password={hashed}")
    report = started(laptop, here).report
    assert (report["access"], report["state"]) == ("password", "up")
    assert "token" not in report["url"]
    for words in (("url",), ("open", "--no-browser")):
        assert laptop.jlr(*words).stdout.strip() == report["url"]
    status = told(laptop, "list", here.name).report
    assert (status["access"], status["kernels"]) == ("password", None)
    assert "a password in the browser" in laptop.jlr("list", here.name).stdout
    with urlopen(report["url"], timeout=30) as page:
        assert "/login" in page.url
    # What its kernels do is not known, so it takes a word to end the container under them.
    failed(laptop.jlr("stop", "--container", "--yes"), 7, "password", "--force")


def test_of_two_servers_it_is_told_which_was_taken_and_an_option_takes_the_other(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    started(laptop, here)
    imitate_by_hand(here, 9999)
    first = laptop.jlr("start", "lab", here.name, "--no-browser")
    assert "2 Jupyter servers run in" in first.stderr, first
    assert "(jlr launched it): `--server 9999` takes that of /" in first.stderr
    other = started(laptop, here, "--server", "9999")
    assert other.base.endswith("/theirs/")
    laptop.jlr("disconnect", "lab")  # the choice is kept, also by the next link
    again = laptop.jlr("start", "lab", here.name, "--no-browser")
    assert "/theirs/" in again.stdout, again
    assert "9999 (as before)" in again.stderr
    failed(laptop.jlr("start", "lab", here.name, "--server", "9998"), 6, "on port 9998", "9999")
