"""NVIDIA's registry: the login of its one user by an API key (row E3), and its images (row B8)."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest

from tests.engines.conftest import EnginesHost
from tests.images.parts import USER, Registry, missing_programs, running_registry
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import run
from tests.lab.remote_host import Keys, new_laptop, running_sshd

NAME = "nvcr.io"
IMAGE = "nvidia/pytorch:24.05-py3"
# What those images have: an entrypoint that says something, and sets the work's variables.
ENTRY = """#!/bin/sh
echo "== NVIDIA Release =="
export GREETING="two  words"
exec "$@"
"""


@contextmanager
def proxy_to(registry: Registry) -> Iterator[str]:
    """Give a proxy for HTTPS that knows one host, nvcr.io, and leads to the registry instead."""

    class Connect(StreamRequestHandler):
        def handle(self) -> None:
            asked = self.rfile.readline().split()
            while self.rfile.readline().strip():
                pass
            if asked[:2] != [b"CONNECT", f"{NAME}:443".encode()]:
                self.wfile.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", registry.port)) as there:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                back = Thread(target=carry, args=(there, self.connection))
                back.start()
                carry(self.connection, there)
                back.join()

    with ThreadingTCPServer(("127.0.0.1", 0), Connect) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def laptop_of_nvidia(
    engines_host: EnginesHost, engine: Engine, keys: Keys, tmp_path: Path
) -> Iterator[tuple[Laptop, Registry]]:
    """A laptop whose host reaches a registry under the name nvcr.io, with TLS."""
    if reasons := missing_programs():
        pytest.skip("; ".join(reasons))
    certificate, key = tmp_path / "nvcr.crt", tmp_path / "nvcr.key"
    named = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("openssl", "req", "-x509", *kind, *named, "-keyout", str(key), "-out", str(certificate))
    trusted = engines_host.account.home / "nvcr.crt"
    trusted.write_bytes(certificate.read_bytes())
    with (
        running_registry(engine, certificate=certificate) as registry,
        proxy_to(registry) as proxy,
        running_sshd(
            engine, keys, environment={"HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(trusted)}
        ) as server,
        new_laptop(server, engines_host.account, keys) as laptop,
    ):
        yield laptop, registry


def push_small_image(registry: Registry, engine: Engine, folder: Path) -> None:
    """Push an image of a shell and an entrypoint under the name of NVIDIA's."""
    files = re.findall(r"/\S+", run("ldd", "/bin/sh"))
    for file in ("/bin/sh", *files):
        (folder / file[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / file[1:])
    (folder / "entry").write_text(ENTRY)
    (folder / "entry").chmod(0o755)
    (folder / "Dockerfile").write_text('FROM scratch\nCOPY . /\nENTRYPOINT ["/entry"]\n')
    local = f"lab-{secrets.token_hex(4)}"
    engine.docker("build", "--quiet", "--tag", local, str(folder))
    registry.push(local, IMAGE)
    engine.docker("rmi", local)


def test_an_image_of_nvidias_registry_is_pulled_and_runs_with_its_entrypoint(
    laptop_of_nvidia: tuple[Laptop, Registry], engine: Engine, tmp_path: Path
) -> None:
    laptop, registry = laptop_of_nvidia
    folder = tmp_path / "image"
    folder.mkdir()
    push_small_image(registry, engine, folder)
    job = ("run", "lab", "--runtime", "podman", "--image", f"{NAME}/{IMAGE}", "--rm")
    shown = (*job, "--", "sh", "-c", 'echo "$GREETING"')
    laptop.jlr(*shown).checked(4, f"`jlr image login lab {NAME}`")
    keep = ("image", "login", "lab", "--runtime", "podman", "--password-stdin", "--keep")
    laptop.jlr(*keep, stdin="wrong").checked(4, f"`{NAME}` refuses this key of `{USER}`")
    accepted = laptop.jlr(*keep, stdin=registry.key).checked()
    assert f"{NAME} accepts the key of {USER};" in accepted.stdout
    done = laptop.jlr(*shown)
    assert (done.status, done.stdout) == (0, "== NVIDIA Release ==\ntwo  words\n"), done
    images = laptop.jlr("image", "list", "lab", "--runtime", "podman", "--json")
    assert f"{NAME}/nvidia/pytorch" in {image["repository"] for image in json.loads(images.stdout)}
