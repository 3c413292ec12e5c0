"""What a bridge tells its clients when the connection to the kernel is lost, and when it dies."""

from __future__ import annotations

import json
import os
import queue
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection import base

from jlremote.errors import JlrError, NotFound
from jlremote.jupyter.api import NoWebSocket
from jlremote.kernels import remote_kernel
from jlremote.kernels.bridge import Bridge
from jlremote.kernels.kernel_ports import LocalPorts
from jlremote.kernels.remote_kernel import Message, decoded, encoded
from tests.lab.programs import wait_until

SECONDS = 20


class Socket:
    """A WebSocket that notes what it is sent, until it is broken."""

    def __init__(self) -> None:
        self.sent: queue.Queue[Message] = queue.Queue()
        self.broken = False

    def send(self, data: str | bytes) -> None:
        if self.broken:
            raise NoWebSocket("lost")
        self.sent.put(decoded(data))

    def next(self, kind: str) -> Message:
        while (message := self.sent.get(timeout=SECONDS)).kind != kind:
            pass
        return message


class Kernel:
    """A kernel of the session that answers what the test wants."""

    id = "k"

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.ports: LocalPorts

    def begin(self) -> None:
        """Do nothing: the test says when it is connected."""

    def tell(self, event: object) -> None:
        self.events.put(event)
        self.ports.wake()

    def answer(self, request: Message, kind: str, content: dict[str, Any]) -> None:
        header = {**request.header, "msg_id": f"answer to {request.id}", "msg_type": kind}
        self.tell(Message("shell", header, request.header, {}, content, []))


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def ended() -> list[JlrError]:
    """The errors that ended the bridge."""
    return []


@pytest.fixture
def client(kernel: Kernel, ended: list[JlrError], tmp_path: Path) -> Iterator[BlockingKernelClient]:
    file, _ = write_connection_file(str(tmp_path / "connection.json"), key=b"secret")
    kernel.ports = LocalPorts(Path(file))
    bridge = Bridge(kernel.ports, kernel)  # type: ignore[arg-type]

    def serve() -> None:
        try:
            bridge.serve()
        except JlrError as error:
            ended.append(error)
        kernel.ports.close()

    thread = threading.Thread(target=serve)
    thread.start()
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels(hb=False)
    yield client
    client.shutdown()
    kernel.tell(NotFound("the test is over"))
    thread.join(SECONDS)
    client.stop_channels()


def test_a_request_whose_answer_was_lost_fails_and_what_was_not_sent_follows(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    first, second = Socket(), Socket()
    kernel.tell(first)
    lost = client.execute("print(1)")
    first.next("execute_request")
    first.broken = True
    late = client.execute("print(2)")
    kernel.tell(second)
    question = second.next("kernel_info_request")
    assert second.next("execute_request").id == late
    kernel.answer(question, "kernel_info_reply", {"status": "ok"})
    reply = client.get_shell_msg(timeout=SECONDS)
    assert reply["parent_header"]["msg_id"] == lost
    assert reply["content"]["ename"] == "ConnectionLost"
    told = [client.get_iopub_msg(timeout=SECONDS) for _ in range(2)]
    assert [message["msg_type"] for message in told] == ["error", "status"]
    kernel.answer(Message("shell", {"msg_id": late}, {}, {}, {}, []), "execute_reply", {})
    assert client.get_shell_msg(timeout=SECONDS)["parent_header"]["msg_id"] == late


def test_an_answer_that_jupyter_kept_meanwhile_is_no_loss(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    first, second = Socket(), Socket()
    kernel.tell(first)
    kept = client.execute("print(1)")
    request = first.next("execute_request")
    kernel.tell(second)
    question = second.next("kernel_info_request")
    kernel.answer(request, "execute_reply", {"status": "ok"})
    kernel.answer(question, "kernel_info_reply", {"status": "ok"})
    reply = client.get_shell_msg(timeout=SECONDS)
    assert (reply["parent_header"]["msg_id"], reply["content"]["status"]) == (kept, "ok")
    again = client.execute("print(2)")
    kernel.answer(second.next("execute_request"), "execute_reply", {"status": "ok"})
    assert client.get_shell_msg(timeout=SECONDS)["parent_header"]["msg_id"] == again


def test_a_message_that_is_not_signed_reaches_no_kernel(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    websocket = Socket()
    kernel.tell(websocket)
    client.session.key = b"another"
    client.execute("print('attack')")
    client.session.key = b"secret"
    wanted = client.execute("print(1)")
    assert websocket.next("execute_request").id == wanted


DEEP = b"[" * 200_000
HOSTILE = (
    [b"<IDS|MSG>", b"", DEEP, DEEP, DEEP, DEEP],
    [b"<IDS|MSG>", b"", *(b"9" * 10_000,) * 4],
    [b"<IDS|MSG>"],
    [b"<IDS|MSG>", b"\xff"],
    [b"x"] * 1000,
    [b"<IDS|MSG>", b"", b"{}"],
    [b""],
    [*(str(n).encode() for n in range(20_000)), b"<IDS|MSG>"],
)


def peer_of(client: BlockingKernelClient, name: str) -> zmq.Socket[bytes]:
    """Return a socket of a program that knows the ports and not the key."""
    peer: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    peer.linger = 0
    peer.connect(f"tcp://127.0.0.1:{getattr(client, f'{name}_port')}")
    return peer


@pytest.mark.parametrize("name", ["shell", "hb"])
def test_what_a_peer_without_the_key_sends_does_not_end_the_bridge(
    name: str, client: BlockingKernelClient, kernel: Kernel
) -> None:
    websocket = Socket()
    kernel.tell(websocket)
    with peer_of(client, name) as peer, peer_of(client, "hb") as heart:
        for frames in HOSTILE:
            peer.send_multipart(frames)
        heart.send_multipart([b"", b"still here"])
        assert heart.poll(SECONDS * 1000)
        wanted = client.execute("print(1)")
        assert websocket.next("execute_request").id == wanted


def test_signed_nonsense_and_a_repeated_message_reach_no_kernel(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    websocket = Socket()
    kernel.tell(websocket)
    session = Session(key=b"secret")
    with peer_of(client, "shell") as peer:
        for parts in ([DEEP] * 4, [b"[]"] * 4, [b"9" * 5000] * 4, [b"{}"] * 3 + [b"1"], [b"{}"]):
            peer.send_multipart([b"<IDS|MSG>", session.sign(parts), *parts])
        once = session.serialize(session.msg("execute_request", {"code": "once"}))
        for _ in range(3):
            peer.send_multipart(once)
        last = session.serialize(session.msg("execute_request", {"code": "last"}))
        peer.send_multipart(last)
        codes = [websocket.next("execute_request").content["code"] for _ in range(2)]
        assert codes == ["once", "last"]


GREETINGS = (b"GET / HTTP/1.1\r\n\r\n", b"\xff" + b"\0" * 8 + b"\x7f", b"\xff" * 5000, b"")


def test_what_is_no_zmq_and_a_message_that_is_too_long_end_their_connection_alone(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    websocket = Socket()
    kernel.tell(websocket)
    with ExitStack() as stack:
        for greeting in GREETINGS * 10:
            peer = socket.create_connection(("127.0.0.1", client.shell_port))
            stack.enter_context(peer).sendall(greeting)
        wanted = client.execute("print(1)")
        assert websocket.next("execute_request").id == wanted


def test_a_message_that_is_too_long_is_refused_before_it_is_read(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    with socket.create_connection(("127.0.0.1", client.hb_port)) as peer:
        peer.settimeout(SECONDS)
        peer.sendall(b"\xff" + bytes(8) + b"\x7f\3\0NULL" + bytes(48))
        peer.sendall(b"\4\x26\5READY\x0bSocket-Type\0\0\0\6DEALER\x08Identity\0\0\0\0"[:40])
        peer.sendall(b"\2" + (1 << 40).to_bytes(8, "big") + b"x" * 1000)
        with suppress(ConnectionResetError):
            while peer.recv(4096):
                pass
    wanted = client.execute("print(1)")
    websocket = Socket()
    kernel.tell(websocket)
    assert websocket.next("execute_request").id == wanted


AS_ANOTHER_USER = """
import encodings.idna, os, socket, sys
os.setuid(65534)
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
peer.settimeout(20)
while peer.recv(4096):
    pass
"""


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root on Linux")
@pytest.mark.parametrize("name", ["shell", "iopub"])
def test_another_user_of_this_machine_is_turned_away(
    name: str, client: BlockingKernelClient, kernel: Kernel
) -> None:
    websocket = Socket()
    kernel.tell(websocket)
    port = str(getattr(client, f"{name}_port"))
    subprocess.run((sys.executable, "-c", AS_ANOTHER_USER, port), check=True, timeout=SECONDS)
    wanted = client.execute("print(1)")
    assert websocket.next("execute_request").id == wanted


def test_a_kernel_that_prints_without_end_keeps_no_client_out(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    websocket = Socket()
    kernel.tell(websocket)
    over = threading.Event()

    def print_on() -> None:
        while not over.is_set():
            for _ in range(1000):
                kernel.events.put(Message("iopub", {"msg_type": "stream"}, {}, {}, {}, []))
            kernel.ports.wake()
            while kernel.events.qsize() > 1000 and not over.is_set():
                over.wait(0.001)

    printing = threading.Thread(target=print_on)
    printing.start()
    try:
        wanted = client.execute("print(1)")
        assert websocket.next("execute_request").id == wanted
    finally:
        over.set()
        printing.join()


@pytest.mark.lab
def test_a_client_that_is_slower_than_the_kernel_gets_every_line(
    client: BlockingKernelClient, kernel: Kernel
) -> None:
    """As after a loss, where much comes at once that has waited."""

    def tell(number: int) -> None:
        header = {"msg_id": uuid4().hex, "msg_type": "stream", "version": "5.3"}
        content = {"name": "stdout", "text": f"{number} {'x' * 2000}"}
        kernel.events.put(Message("iopub", header, {}, {}, content, []))

    kernel.tell(Socket())
    while not client.iopub_channel.msg_ready():  # until it is subscribed
        tell(-1)
        kernel.ports.wake()
    for number in range(6000):
        tell(number)
    kernel.ports.wake()
    wait_until(kernel.events.empty, "the bridge's reading", timeout=60)
    numbers = [-1]
    while numbers[-1] < 5999:
        text = client.get_iopub_msg(timeout=SECONDS)["content"]["text"]
        numbers.append(int(text.split()[0]))
    assert [number for number in numbers if number >= 0] == list(range(6000))


def test_a_kernel_that_died_ends_the_bridge(
    client: BlockingKernelClient, kernel: Kernel, ended: list[JlrError]
) -> None:
    content = {"execution_state": "restarting"}
    kernel.tell(Message("iopub", {"msg_type": "status"}, {}, {}, content, []))
    kernel.tell(NotFound("not read any more"))
    client.shutdown()
    wait_until(lambda: bool(ended), "the bridge's end")
    assert ended[0].message == "the kernel has died there"


def test_messages_with_buffers_are_as_jupyter_reads_and_writes_them() -> None:
    session = Session()
    message = session.msg("comm_msg", {"a": "ü"})
    parts = {key: message[key] for key in ("header", "parent_header", "metadata", "content")}
    parts = json.loads(json.dumps(parts, default=str))
    told = {**parts, "channel": "shell", "buffers": [b"\0one", b"", b"three"]}
    write: Callable[..., bytes] = base.serialize_binary_message
    read_back: Callable[..., dict[str, Any]] = base.deserialize_binary_message
    read = decoded(write(dict(told)))
    assert read.buffers == told["buffers"]
    written = encoded(read)
    assert isinstance(written, bytes)
    again = read_back(written)
    assert again["content"] == {"a": "ü"}
    assert [bytes(part) for part in again["buffers"]] == read.buffers


@pytest.mark.parametrize(
    "data",
    [
        *("", "[]", "{}", '{"header": 1}', "[" * 200_000, b"", b"\0\0\0\x09", b"\0\0\0\1x"),
        struct.pack("!5I", 4, 20, 0, 1000, 0) + bytes(1000),  # parts that overlap
        struct.pack("!I", 2**32 - 1),
    ],
)
def test_what_is_no_message_is_told(data: str | bytes) -> None:
    with pytest.raises(JlrError, match="cannot read the answer of Jupyter"):
        remote_kernel.decoded(data)
