"""Takes addresses of its bridge by answering ARP for them, and the TCP connections that come then.

It runs in a container, with no more than what docker gives to each (CAP_NET_RAW): `python3 -c …
ADDRESS…`. What it is sent goes to /tmp/heard.
"""

import socket
import struct
import sys
import threading
import time
from pathlib import Path

EVERY_SECONDS = 0.02
ARP, IPV4, TCP = 0x0806, 0x0800, 6
EVERYBODY = b"\xff" * 6
SYN, PUSH_ACK = 0x02, 0x10

taken = [socket.inet_aton(address) for address in sys.argv[1:]]
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
raw.bind(("eth0", 3))
own = raw.getsockname()[4]


def answer(address: bytes, to: bytes, asker: bytes) -> None:
    """Say that an address is ours."""
    body = struct.pack("!HHBBH", 1, IPV4, 6, 4, 2) + own + address + to + asker
    raw.send(to + own + struct.pack("!H", ARP) + body)


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def reply(frame: bytes, flags: int, sequence: int, acknowledged: int) -> None:
    """Send a TCP segment without data back to the sender of a frame."""
    segment_at = 14 + (frame[14] & 15) * 4
    source, ours, port = frame[26:30], frame[30:34], frame[segment_at : segment_at + 4]
    segment = struct.pack(
        "!2s2sIIBBHHH", port[2:], port[:2], sequence, acknowledged, 0x50, flags, 65535, 0, 0
    )
    pseudo = ours + source + struct.pack("!BBH", 0, TCP, len(segment))
    segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, TCP, 0, ours, source)
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    raw.send(frame[6:12] + own + struct.pack("!H", IPV4) + head + segment)


def hear(frame: bytes) -> None:
    at = 14 + (frame[14] & 15) * 4
    sequence, acknowledged, offset, flags = struct.unpack("!IIBB", frame[at + 4 : at + 14])
    data = frame[at + (offset >> 4) * 4 : 14 + struct.unpack("!H", frame[16:18])[0]]
    if flags & SYN:
        reply(frame, SYN | PUSH_ACK, 1000, sequence + 1)
    elif data:
        with Path("/tmp/heard").open("ab") as heard:
            heard.write(data)
        reply(frame, PUSH_ACK, acknowledged, sequence + len(data))


def listen() -> None:
    while True:
        frame = raw.recv(65536)
        kind = struct.unpack("!H", frame[12:14])[0]
        if kind == ARP and frame[38:42] in taken and frame[20:22] == b"\0\1" and frame[6:12] != own:
            answer(frame[38:42], frame[6:12], frame[28:32])
        elif kind == IPV4 and frame[23] == TCP and frame[30:34] in taken and frame[:6] == own:
            hear(frame)


threading.Thread(target=listen, daemon=True).start()
while True:
    for one in taken:
        answer(one, EVERYBODY, one)
    time.sleep(EVERY_SECONDS)
