"""A Jupyter with a certificate: off where jlr launches it, proved by its file where it runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.lab.browser import SECONDS, open_notebook, run_cell
from tests.lab.certificates import Certificate, certificate
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.long import LONG
from tests.sessions.parts import SERVER, failed, start, started

FILE = "/srv/own/both.pem"
BOTH = {"certfile": FILE, "keyfile": FILE}
USERS = "/root/.jupyter/jupyter_server_config"
NAMED = f"--certfile={FILE}"
# Loads the certificate once, as servers other than Tornado's do.
ONCE = """\
import functools, ssl, sys, tornado.netutil
from jupyterlab.labapp import main

@functools.lru_cache(None)
def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(sys.argv[1].partition("=")[2])
    return made

tornado.netutil.ssl_options_to_context = lambda options, server_side=None: context()
main()
"""


def both(made: Certificate) -> str:
    return made.text + made.key


def files(texts: Mapping[str, str]) -> str:
    """Return shell text that writes files, which only their owner can read."""
    lines = ("umask 077; mkdir -p /srv/own /root/.jupyter /etc/jupyter; cd /srv/own",)
    writes = (f"printf %s {shlex.quote(text)} >{path}" for path, text in texts.items())
    return "\n".join((*lines, *writes))


def with_a_server(
    container: ContainerFactory, texts: Mapping[str, str], *words: str, option: str = "--tty=false"
) -> Container:
    """Return a container with files and a Jupyter that speaks TLS; `words` run it."""
    begin = f'{files(texts)}\nexec "$@"'
    here = container("lab/jupyter", "sh", "-c", begin, "sh", *words, options=(option,))
    here.await_output("is running at")
    return here


def test_certificates_and_sockets_of_all_configurations_are_off_where_jlr_launches(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    lines = "\n".join(f"get_config().APP.{name} = '{FILE}'" for name in BOTH)
    texts = {
        FILE: both(certificate()),
        "/etc/jupyter/jupyter_server_config.json": json.dumps({"ServerApp": BOTH}),
        "/root/.jupyter/jupyter_lab_config.py": lines.replace("APP", "ServerApp"),
        "/root/.jupyter/jupyter_notebook_config.py": lines.replace("APP", "NotebookApp"),
        f"{USERS}.py": f"get_config().ServerApp.ssl_options = {BOTH}",
        "/etc/jupyter/jupyter_server_config.py": "get_config().ServerApp.sock = '/tmp/own.sock'",
    }
    here.execute("sh", "-c", files(texts))
    assert started(laptop, here).born()


CA = certificate("authority.example")
LEAF = certificate(by=CA)
RELATIVE = {"ServerApp": {"certfile": "chain.pem", "keyfile": "key.pem"}}
COMPUTED = """\
import os
folder = os.environ["JUPYTER_DATA_DIR"]
get_config().ServerApp.certfile = os.path.join(folder, "note" + "book.pem")
"""
VARIABLE = "import os; get_config().ServerApp.certfile = os.environ['OF_TLS']"
ANOTHER = (
    "chmod 755 /etc/jupyter; chmod 644 /etc/jupyter/*; chown -R 1000 /srv/own; "
    'exec setpriv --reuid=1000 --regid=100 --clear-groups env HOME=/srv/own "$@"'
)


@pytest.mark.parametrize(
    ("texts", "words", "option"),
    [
        (
            {
                "chain.pem": LEAF.text + CA.text,
                "key.pem": LEAF.key,
                f"{USERS}.json": json.dumps(RELATIVE),
            },
            (),
            "--tty=false",
        ),
        LONG(
            {"notebook.pem": both(LEAF), f"{USERS}.py": COMPUTED},
            (),
            "--env=JUPYTER_DATA_DIR=/srv/own",
        ),
        LONG(
            {FILE: both(LEAF), "/etc/jupyter/jupyter_server_config.py": VARIABLE},
            ("sh", "-c", ANOTHER, "sh", "env", f"OF_TLS={FILE}"),
            "--network=host",
        ),
    ],
    ids=["a relative path and a chain", "a computed path", "another user's on the host's network"],
)
def test_a_server_with_a_certificate_is_reused(
    laptop: Laptop,
    container: ContainerFactory,
    texts: dict[str, str],
    words: tuple[str, ...],
    option: str,
) -> None:
    port = f"--port={free_port()}"
    here = with_a_server(container, texts, *words, *SERVER, port, option=option)
    assert "/theirs/" in started(laptop, here).url


def test_the_page_and_all_commands_use_a_server_with_a_certificate(
    laptop: Laptop, container: ContainerFactory, chromium: BrowserContext
) -> None:
    texts = {FILE: both(certificate())}
    here = with_a_server(container, texts, *SERVER, NAMED)
    session = started(laptop, here)
    page = chromium.new_page()
    open_notebook(page, laptop.jlr("open", here.name, "--no-browser").stdout.strip())
    here.execute("sh", "-c", files({FILE: both(certificate())}))  # Jupyter reads it again
    # By its cookie, which is for pages of https or of this machine.
    answer = chromium.new_page().goto(f"http://{session.base}api/contents", timeout=SECONDS)
    assert answer is not None
    assert answer.status == 200
    run_cell(page, "'af' + 'ter'")
    expect(page.locator(".jp-OutputArea-executeResult").last).to_contain_text(
        "'after'", timeout=SECONDS
    )
    with session.notebook("websocket.ipynb") as kernel:
        assert kernel.run("len('x' * 9_000_000)") == "9000000"
    status = laptop.jlr("list", here.name, "--json")
    assert json.loads(status.stdout)["kernels"], status
    assert laptop.jlr("stop", here.name, "--force", "--yes").status == 0


def test_a_server_that_shows_another_certificate_than_its_file_has_gets_nothing(
    laptop: Laptop, container: ContainerFactory
) -> None:
    texts = {FILE: both(certificate()), "once.py": ONCE}
    here = with_a_server(container, texts, "python3", "once.py", NAMED, *SERVER[2:])
    session = started(laptop, here)
    here.execute("sh", "-c", files({FILE: both(certificate())}))
    with pytest.raises(OSError, match=r"closed connection|reset"):
        session.born()
    why = "the certificate of Jupyter is not proved: it shows another one than its file has"
    assert why in laptop.jlr("list", here.name).stdout
    failed(start(laptop, "lab", here.name), 1, why, "end this Jupyter, then `jlr start")


@pytest.mark.parametrize(
    ("texts", "words", "why"),
    [
        LONG({}, (NAMED, f"--client-ca={FILE}"), "is not proved: it asks for one of its clients"),
        LONG(
            {f"{USERS}.py": f"get_config().ServerApp.certfile = '/srv/'{FILE[5:]!r}"}, (), "no file"
        ),
    ],
    ids=["client's", "unknown"],
)
def test_a_server_whose_certificate_cannot_be_proved_is_refused_with_the_reason(
    laptop: Laptop, container: ContainerFactory, texts: dict[str, str], words: tuple[str], why: str
) -> None:
    texts = {**texts, FILE: both(certificate())}
    here = with_a_server(container, texts, *SERVER, *words)
    failed(start(laptop, "lab", here.name), 1, why, f"run `jlr start lab {here.name}`")
