"""Gigabytes each way through our forward, across many exchanges of keys, with their checksums.

`python -m tests.bench.soak [GIGABYTES]` prints a table; 10 are sent if nothing is said. Needs root,
because it starts an sshd of its own, which wants new keys after each gigabyte. The exit code is 1
if a checksum differs.
"""

from __future__ import annotations

import hashlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.tunnel import part
from tests.bench.tunnel_parts import FAR, connect
from tests.lab.sshd import SSHServer, make_key

BLOCK = 1 << 20
DIGEST = hashlib.sha256().digest_size
_NOISE = random.Random(4).randbytes(BLOCK - 8)  # the same in both processes


@dataclass(frozen=True)
class Passed:
    """What came through.

    Attributes:
        down: megabytes (of 2^20 bytes) a second from the host.
        up: the same to the host.
        intact: whether all checksums were equal.
        new_keys: how often sshd took new keys into use, both directions together.
    """

    down: float
    up: float
    intact: bool
    new_keys: int


def blocks(count: int) -> Iterator[bytes]:
    """Give blocks of noise, each with its number, so that none can be swapped or left out."""
    for number in range(count):
        yield number.to_bytes(8, "big") + _NOISE


def send(sock: socket.socket, count: int) -> bytes:
    """Send blocks and return their checksum."""
    checksum = hashlib.sha256()
    for block in blocks(count):
        checksum.update(block)
        sock.sendall(block)
    return checksum.digest()


def take(sock: socket.socket, count: int) -> bytes:
    """Read as much as `count` blocks and return its checksum."""
    checksum, left = hashlib.sha256(), count * BLOCK
    buffer = bytearray(BLOCK)
    view = memoryview(buffer)
    while left:
        got = sock.recv_into(view[: min(BLOCK, left)])
        if not got:
            break
        checksum.update(view[:got])
        left -= got
    return checksum.digest()


def answer(sock: socket.socket) -> None:
    """Serve what the first byte asks for, so many blocks: `d`own or `u`p; the checksum follows."""
    with sock:
        wish, count = sock.recv(1), int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
        sock.sendall(send(sock, count) if wish == b"d" else take(sock, count))


def far_end() -> None:
    """Listen, print the port, and serve until stdin ends."""
    listener = socket.create_server((FAR, 0))
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


@contextmanager
def far_process() -> Iterator[int]:
    """Run the far end as a process of its own and give its port."""
    argv = (sys.executable, "-m", "tests.bench.soak", "far")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def down(port: int, count: int) -> tuple[float, bool]:
    """Return the seconds that a download took, and whether it came whole."""
    with connect(port) as sock:
        began = time.perf_counter()
        sock.sendall(b"d" + count.to_bytes(4, "big"))
        came = take(sock, count)
        took = time.perf_counter() - began
        return took, came == sock.recv(DIGEST, socket.MSG_WAITALL)


def up(port: int, count: int) -> tuple[float, bool]:
    """Return the seconds that an upload took, and whether it came whole."""
    with connect(port) as sock:
        began = time.perf_counter()
        sock.sendall(b"u" + count.to_bytes(4, "big"))
        sent = send(sock, count)
        came = sock.recv(DIGEST, socket.MSG_WAITALL)
        return time.perf_counter() - began, came == sent


def soak(megabytes: int, rekey_megabytes: int) -> Passed:
    """Send bytes each way through a forward while its server exchanges keys now and then."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        key = make_key(Path(folder) / "key")
        limits = (f"RekeyLimit {rekey_megabytes}M", "LogLevel DEBUG1")
        options = ("PermitRootLogin yes", *limits)
        sshd = stack.enter_context(SSHServer(key.with_suffix(".pub"), options=options))
        target = stack.enter_context(far_process())
        port = stack.enter_context(part("ours", sshd.port, key, target))[0]
        before = sshd.log_text().count(_NEW_KEYS)
        (down_took, down_well), (up_took, up_well) = down(port, megabytes), up(port, megabytes)
        new_keys = sshd.log_text().count(_NEW_KEYS) - before
    rates = megabytes / down_took, megabytes / up_took
    return Passed(*rates, down_well and up_well, new_keys)


_NEW_KEYS = "rekey in after"


def main() -> int:
    if sys.argv[1:] == ["far"]:
        far_end()
    gigabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    passed = soak(gigabytes * 1024, 1024)
    print(f"| {gigabytes} GiB each way | |\n|---|---|")
    print(f"| down, MiB/s | {passed.down:.0f} |")
    print(f"| up, MiB/s | {passed.up:.0f} |")
    print(f"| exchanges of keys | {passed.new_keys} |")
    print(f"| checksums | {'equal' if passed.intact else 'DIFFERENT'} |")
    return int(not passed.intact)


if __name__ == "__main__":
    sys.exit(main())
