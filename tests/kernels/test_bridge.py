"""What a bridge tells its clients when the connection to the kernel is lost, and when it dies."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection import base

from jlremote.errors import JlrError
from jlremote.jupyter.kernel import NoWebSocket
from jlremote.kernels import remote_kernel
from jlremote.kernels.bridge import Bridge
from jlremote.kernels.local_ports import LocalPorts, Message
from jlremote.kernels.remote_kernel import KernelGone, decoded, encoded

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
    kernel.tell(KernelGone("the test is over"))
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
    socket = Socket()
    kernel.tell(socket)
    client.session.key = b"another"
    client.execute("print('attack')")
    client.session.key = b"secret"
    wanted = client.execute("print(1)")
    assert socket.next("execute_request").id == wanted


def test_a_kernel_that_died_ends_the_bridge(
    client: BlockingKernelClient, kernel: Kernel, ended: list[JlrError]
) -> None:
    content = {"execution_state": "restarting"}
    kernel.tell(Message("iopub", {"msg_type": "status"}, {}, {}, content, []))
    kernel.tell(KernelGone("not read any more"))
    client.shutdown()
    while not ended:
        pass
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
    "data", ["", "[]", "{}", '{"header": 1}', b"", b"\0\0\0\x09", b"\0\0\0\1x"]
)
def test_what_is_no_message_is_told(data: str | bytes) -> None:
    with pytest.raises(JlrError, match="no message of a kernel"):
        remote_kernel.decoded(data)
