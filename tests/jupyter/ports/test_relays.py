"""Each relay into a container takes one of the ten sessions of an SSH connection."""

from __future__ import annotations

import pytest

from jlremote.ssh.channels.channel_registry import KEPT
from tests.jupyter.ports.parts import listens_inside, only, word_at
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.link.fakes import until
from tests.link.servers import start_inside
from tests.sessions.parts import failed, start

PORTS = range(7001, 7000 + KEPT)  # and one relay leads to Jupyter
# A web server on many ports that says one word.
SAYS = """
import http.server, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"here")
for port in map(int, sys.argv[1:]):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever).start()
"""


@pytest.mark.long
def test_one_relay_too_many_is_refused_with_advice_and_works_once_there_is_room(
    laptop: Laptop, inside: Container, container: ContainerFactory
) -> None:
    words = ("python3", "-c", SAYS, *map(str, PORTS))
    inside.engine.docker("exec", "--detach", inside.name, *words)
    until(lambda: listens_inside(inside, PORTS[-1]), "the servers")
    for port in PORTS:
        assert word_at(only(laptop, inside.name, str(port))["local_port"]) == "here"
    other = container("lab/plain")
    start_inside(other, 8888, bind="127.0.0.1")
    words = (
        "cannot open another connection into a container",
        f"{KEPT} terminals, logs, mounts",
        "`jlr list`",
    )
    failed(start(laptop, "lab", other.name), 7, *words)
    assert other.name not in laptop.jlr("list", "--json").stdout
    assert laptop.jlr("forward", inside.name, "--remove", str(PORTS[0])).status == 0
    assert start(laptop, "lab", other.name).status == 0
