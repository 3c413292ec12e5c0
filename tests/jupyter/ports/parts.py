"""What listens beside Jupyter, and what a browser sees of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from jlremote.jupyter import locate
from tests.lab.accounts import Account
from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, wait_until
from tests.link.desk import Desk
from tests.link.fakes import until

PORT = 6006
# A web server that says one word; TensorBoard in short.
SAYS = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[3].encode())
    def log_message(self, *what):
        pass
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def serve_inside(container: Container, word: str, bind: str, port: int = PORT) -> None:
    """Start the web server in a container."""
    argv = ("python3", "-c", SAYS, bind, str(port), word)
    container.engine.docker("exec", "--detach", container.name, *argv)
    until(lambda: listens_inside(container, port), f"the server on {port}")


@contextmanager
def serving_on_host(account: Account, word: str, port: int) -> Iterator[None]:
    """Run the web server on the host itself, as a user's program."""
    argv = ("python3", "-c", SAYS, "127.0.0.1", str(port), word)
    environment = {"PATH": "/usr/bin:/bin"}
    server = subprocess.Popen(argv, user=account.uid, extra_groups=(), env=environment, cwd="/")
    try:
        until(lambda: word_at(port) == word, f"the server on {port}")
        yield
    finally:
        server.kill()
        server.wait()


def end_inside(container: Container, word: str) -> None:
    """End the web server that says a word."""
    find = """
for one in /proc/[0-9]*; do
  [ "$one" != "/proc/$$" ] && grep -qzxF "$0" "$one/cmdline" && kill "${one#/proc/}"
done; :"""
    container.execute("sh", "-c", find, word)


def state_of(desk: Desk, session: str) -> str:
    """Return what the link says of a session's port; starts nothing."""
    [told] = desk.link().status().further(session)
    return told.state


def listens_inside(container: Container, port: int) -> bool:
    """Return whether something listens in a container."""
    printed = container.execute("sh", "-c", f"{locate.probe(port)}printf .")  # keeps what is blank
    return bool(locate.read_listening(printed).sockets)


def word_at(local_port: int, name: str = "127.0.0.1") -> str | None:
    """Return what a browser gets from a local port under a name; `None` if it is turned away."""
    headers = {"Host": f"{name}:{local_port}"}
    asked = Request(f"http://127.0.0.1:{local_port}/", headers=headers)
    with suppress(URLError, OSError), urlopen(asked, timeout=PATIENCE) as got:
        return str(got.read().decode())
    return None


def told(laptop: Laptop, *words: str) -> list[dict[str, Any]]:
    """Return what `jlr forward … --json` prints; it must succeed."""
    result = laptop.jlr("forward", *words, "--json")
    assert result.status == 0, result
    return list(json.loads(result.stdout))


def only(laptop: Laptop, *words: str) -> dict[str, Any]:
    """Return the only object that `jlr forward … --json` prints."""
    [port] = told(laptop, *words)
    return port


def probed(*rows: str, held: int | None = 77, user: int = 1000) -> str:
    descriptors = "" if held is None else f"lrwx------ 1 u g 64 Jan 1 3 -> socket:[{held}]"
    told = {
        "user": str(user),
        "python": "/usr/bin/python3",
        "listening": "\n".join(rows),
        "held": descriptors,
    }
    return "".join(f"{name}\037{value}\036" for name, value in told.items())


def web_server(container: Container, port: int, *options: str) -> None:
    """Run `python3 -m http.server` in a container."""
    argv = ("python3", "-m", "http.server", str(port), *options)
    container.engine.docker("exec", "--detach", container.name, *argv)


def listed(laptop: Laptop, session: str) -> dict[int, dict[str, Any]]:
    """Return what `jlr list SESSION --json` says of the ports there."""
    report = json.loads(laptop.jlr("list", session, "--json").stdout)
    return {port["port"]: port for port in report["ports"]}


class Following:
    """A running `jlr forward --auto`, and what it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.lines = process, list[str]()
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self.lines.extend(iter(output.readline, ""))

    def line(self, text: str) -> str:
        """Return the line that a pattern is in, once it is printed."""

        def printed() -> list[str]:
            return [line for line in self.lines if re.search(text, line)]

        wait_until(printed, f"`{text}` in {self.lines}")
        return printed()[-1]


@contextmanager
def following(laptop: Laptop, *words: str, status: int = 0) -> Iterator[Following]:
    """Follow a session; Ctrl-C ends that, and its forwards."""
    process = laptop.spawn("forward", "--auto", *words)
    follower = Following(process)
    try:
        follower.line("Ctrl-C")
        yield follower
    finally:
        if not status:
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == status, follower.lines
        follower.reading.join()
