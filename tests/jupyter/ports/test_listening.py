"""`jlr list SESSION` tells what listens there: which program, since when, and where it is here."""

from __future__ import annotations

import re
import time
from datetime import datetime

from jlremote.forwards import listening
from jlremote.laptop import sessions
from tests.jupyter.ports.conftest import JUPYTER_PORT
from tests.jupyter.ports.parts import listed, web_server
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, wait_until
from tests.link.desk import Desk
from tests.sessions.parts import started

IN_A_CELL = """
import http.server, threading
server = http.server.HTTPServer(("", 7860), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
"""


def test_what_listens_is_listed_without_jupyter_and_the_ports_of_kernels(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    session = started(laptop, here)
    web_server(here, 8000, "--bind", "127.0.0.1")
    web_server(here, 8001, "--bind", here.address)
    with session.notebook("app.ipynb") as kernel:
        kernel.run(IN_A_CELL)
        assert laptop.jlr("forward", here.name, "8000").status == 0
        wait_until(lambda: len(listed(laptop, here.name)) >= 3, "the three programs")
        found = listed(laptop, here.name)
        shown = laptop.jlr("list", here.name).stdout
    assert {port: (one["state"], one["program"]) for port, one in found.items()} == {
        7860: ("running", "ipykernel_launcher"),
        8000: ("up", "http.server"),
        8001: ("running", "http.server"),
    }
    assert found[8000]["url"] == f"http://127.0.0.1:{found[8000]['local_port']}/"
    assert found[7860]["url"] is found[7860]["page"] is None
    assert found[8001]["detail"] == f"it listens on {here.address} only"
    for one in found.values():
        assert abs(datetime.fromisoformat(one["since"]).timestamp() - time.time()) < PATIENCE
    assert re.search(r"^7860 +- +running +\d+s +ipykernel_launcher$", shown, re.MULTILINE), shown


def test_an_answer_that_was_cut_is_none(desk: Desk, laptop: Laptop, inside: Container) -> None:
    web_server(inside, 8000)
    wait_until(lambda: 8000 in listed(laptop, inside.name), "the server")
    record, link = sessions.find("lab", inside.name), desk.link()
    assert record is not None
    whole = desk.run(listening.script(link, record))
    found = listening.read(whole, link, record, {})
    assert found is not None
    assert list(found) == [8000] != [JUPYTER_PORT]
    for length in range(0, whole.rindex("\036"), 97):
        assert listening.read(whole[:length], link, record, {}) is None
