"""The forwards of ssh clients: TCP, SOCKS and unix sockets both ways, the agent, a jump."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.editors.conftest import SECONDS, Clients, end
from tests.lab.ports import free_port
from tests.lab.programs import wait_until

PORT = 7611  # in the container, on its loopback
BODY = os.urandom(3_000_000)


@pytest.fixture(scope="module")
def web(clients: Clients) -> None:
    """A web server on the container's own loopback, with a file."""
    clients.ssh(clients.name, "mkdir -p /web; cat >/web/body", given=BODY)
    serve = f"setsid python3 -m http.server {PORT} --bind 127.0.0.1 --directory /web"
    clients.ssh(clients.name, f"{serve} </dev/null >/dev/null 2>&1 &")
    probe = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {PORT}))'"
    wait_until(lambda: clients.ssh(clients.name, probe).returncode == 0, "the web server", 60)


@contextmanager
def running(clients: Clients, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = clients.popen("-o", "ExitOnForwardFailure=yes", *words)
    try:
        yield process
    finally:
        end(process)


def fetched(port: int) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}/body", timeout=SECONDS) as answer:
        return bytes(answer.read())


def answers(port: int) -> bool:
    try:
        return fetched(port) == BODY
    except (URLError, OSError):
        return False


def test_a_port_of_the_containers_loopback_is_reached(clients: Clients, web: None) -> None:
    local, socks = free_port(), free_port()
    forwards = ("-L", f"127.0.0.1:{local}:localhost:{PORT}", "-D", f"127.0.0.1:{socks}")
    with running(clients, *forwards, "-N", clients.name):
        wait_until(lambda: answers(local), "the forward", SECONDS)
        proxy = ("curl", "-sS", "--max-time", "60", "-x", f"socks5h://127.0.0.1:{socks}")
        done = clients.run(*proxy, f"http://localhost:{PORT}/body")
        assert done.stdout == BODY, done.stderr
    request = b"HEAD /body HTTP/1.0\r\n\r\n"
    through = clients.ssh("-W", f"127.0.0.1:{PORT}", clients.name, given=request)
    assert through.stdout.startswith(b"HTTP/1.0 200"), through
    refused = clients.ssh("-W", "127.0.0.1:1", clients.name)
    assert refused.returncode == 255
    assert b"nothing listens on port 1 there" in refused.stderr


class Here(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"laptop")

    def log_message(self, *_: object) -> None: ...


def test_a_port_and_a_path_there_lead_to_the_laptop(clients: Clients) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Here) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"127.0.0.1:{server.server_address[1]}"
        ask = (
            "import socket, sys\n"
            "for where in ('127.0.0.1', 7612), '/tmp/here':\n"
            "    kind = socket.AF_INET if where[0] == '127.0.0.1' else socket.AF_UNIX\n"
            "    s = socket.socket(kind); s.connect(where)\n"
            "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
            "    print(s.makefile('rb').read()[-6:].decode())\n"
        )
        forwards = ("-R", f"7612:{here}", "-R", f"/tmp/here:{here}")
        options = ("-o", "ExitOnForwardFailure=yes", *forwards)
        done = clients.ssh(*options, clients.name, "python3 -", given=ask.encode())
        assert done.stdout.split() == [b"laptop", b"laptop"], done
        again = clients.ssh(*options, clients.name, "true")  # both are free again
        assert again.returncode == 0, again
        server.shutdown()


def test_a_path_here_leads_to_a_path_there(clients: Clients) -> None:
    here = f"{clients.laptop.folder}/path"
    serve = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('/tmp/there'); s.listen()\n"
        "print('listens', flush=True); c, _ = s.accept(); c.sendall(c.recv(9) + b' there')"
    )
    with running(clients, "-L", f"{here}:/tmp/there", clients.name, f'python3 -c "{serve}"') as ssh:
        assert ssh.stdout is not None
        assert ssh.stdout.readline() == b"listens\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(here)
            client.sendall(b"from here")
            assert client.makefile("rb").read() == b"from here there"


def test_the_agent_is_there_only_when_asked_for(clients: Clients) -> None:
    key = clients.laptop.make_key("lent")
    script = f"""
eval "$(ssh-agent)" >/dev/null; ssh-add -q {key}
ssh -A -F {clients.config} {clients.name} python3 - <<'END'
import os, socket
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["SSH_AUTH_SOCK"])
s.sendall(bytes((0, 0, 0, 1, 11)))
print(s.recv(9)[4:])
END
ssh -F {clients.config} {clients.name} 'echo [$SSH_AUTH_SOCK]; ls /tmp | grep -c jlr-ssh'
kill "$SSH_AGENT_PID"
"""
    done = clients.run("sh", "-c", script)
    # SSH_AGENT_IDENTITIES_ANSWER, one key
    assert done.stdout.splitlines() == [rb"b'\x0c\x00\x00\x00\x01'", b"[]", b"0"], done


def test_one_connection_is_shared_and_vs_code_begins(clients: Clients, web: None) -> None:
    """VS Code runs `ssh -T -D PORT HOST bash` with a script on stdin, and its server listens."""
    control = f"{clients.laptop.folder}/control"
    script = b'echo "listeningOn==7611=="; uname -m; cat /etc/hostname\nexec sleep 600\n'
    socks = free_port()
    shared = ("-o", f"ControlPath={control}", "-o", "ControlMaster=auto")
    with running(clients, *shared, "-T", "-D", f"127.0.0.1:{socks}", clients.name, "bash") as code:
        assert code.stdin is not None
        assert code.stdout is not None
        code.stdin.write(script)
        code.stdin.flush()
        assert code.stdout.readline() == b"listeningOn==7611==\n"
        proxy = ("curl", "-sS", "--max-time", "60", "-x", f"socks5h://127.0.0.1:{socks}")
        assert clients.run(*proxy, f"http://127.0.0.1:{PORT}/body").stdout == BODY
        done = clients.ssh(*shared, "-O", "check", clients.name)
        assert done.returncode == 0, done
        assert clients.ssh(*shared, clients.name, "echo second").stdout == b"second\n"


def test_a_jump_through_the_session_ends_at_the_host(clients: Clients) -> None:
    """The container reaches the host's sshd by its address on the engine's network."""
    route = clients.ssh(
        clients.name, "python3 -c \"print([l.split()[2] for l in open('/proc/net/route')][1])\""
    )
    gateway = socket.inet_ntoa(bytes.fromhex(route.stdout.decode().strip())[::-1])
    with socket.create_server((gateway, 0)) as there:
        port = there.getsockname()[1]
        jumped = clients.popen(
            *("-J", clients.name, "-o", "ConnectTimeout=5", "-p", str(port), gateway, "true")
        )
        there.settimeout(SECONDS)
        accepted, address = there.accept()
        assert accepted.recv(8) == b"SSH-2.0-"
        assert address[0] != gateway  # it comes out of the container
        accepted.close()
        end(jumped)
