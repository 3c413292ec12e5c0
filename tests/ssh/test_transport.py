"""The transport: what it offers, how it knows that the line is dead, and that it is quiet."""

from __future__ import annotations

import threading
import time

import paramiko
import pytest

from jlremote.errors import LinkLost, NoCommonAlgorithm
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.config.destination import Algorithms
from jlremote.ssh.connection import Connection
from jlremote.ssh.transport.algorithms import CIPHERS, HOST_KEYS, KEY_EXCHANGE, MACS, Offer, offer
from jlremote.ssh.wire_format import opening
from tests.lab.accounts import Account
from tests.lab.programs import PATIENCE, load
from tests.lab.sshd import SSHServer
from tests.ssh.channels.parts import Handler
from tests.ssh.conftest import StartServer
from tests.ssh.laptop import Laptop

UNSAFE = ("cbc", "3des", "md5", "sha1", "arcfour", "ssh-rsa", "ssh-dss", "group1-")


def test_nothing_unsafe_is_offered_and_gcm_comes_first() -> None:
    everything = (*CIPHERS, *MACS, *KEY_EXCHANGE, *HOST_KEYS)
    assert not [name for name in everything for word in UNSAFE if word in name]
    assert "gcm" in CIPHERS[0]


def test_the_offer_and_strict_key_exchange_are_sent(host: SSHServer, guest: Laptop) -> None:
    with guest.connected() as connection:
        transport = connection.transport
        assert transport.agreed_on_strict_kex
        assert transport.local_cipher == transport.remote_cipher == CIPHERS[0]
        assert set(transport.preferred_ciphers) <= set(CIPHERS)
        assert set(transport.preferred_macs) <= set(MACS)
        assert not any("cert" in name for name in transport.preferred_keys)
        assert transport.get_security_options().compression == ("none",)


def test_the_settings_only_ever_narrow_the_offer() -> None:
    narrow = Algorithms(ciphers=("aes256-ctr", "3des-cbc"), macs=("hmac-sha2-512",))
    made = offer(narrow, (), compression=False)
    assert (made.ciphers, made.macs) == (("aes256-ctr",), ("hmac-sha2-512",))
    assert made.host_keys == Offer().host_keys
    made = offer(Algorithms(macs=("hmac-sha1",)), (), compression=False)
    assert made.ciphers == CIPHERS[:2], "only those that need no MAC"
    with pytest.raises(NoCommonAlgorithm, match="MACs"):
        offer(Algorithms(ciphers=CIPHERS[2:], macs=("hmac-sha1",)), (), compression=False)
    with pytest.raises(NoCommonAlgorithm, match="Ciphers"):
        offer(Algorithms(ciphers=("3des-cbc",)), (), compression=False)


def test_compression_begins_after_the_login_and_carries_data(
    host: SSHServer, guest: Laptop, account: Account
) -> None:
    guest.configure(host, account, "Compression yes")
    received = bytearray()
    with guest.connected() as connection:
        assert connection.transport.remote_compression == "zlib@openssh.com"
        status = connection.execute(
            b"head -c 3000000 /dev/zero | tr '\\0' x", lambda _s, data: received.extend(data)
        )
    assert status == 0
    assert bytes(received) == b"x" * 3_000_000


def test_probes_at_once_each_get_an_answer_while_keys_are_renewed(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    laptop.configure(start(["RekeyLimit 64K"]), account)
    with laptop.connected() as connection:
        times: list[float] = []
        busy = threading.Thread(
            target=connection.execute, args=(b"head -c 5000000 /dev/zero", lambda *_: None)
        )
        busy.start()
        probes = [
            threading.Thread(target=lambda: times.append(connection.probe(20))) for _ in range(20)
        ]
        for probe in probes:
            probe.start()
        for thread in (*probes, busy):
            thread.join(PATIENCE)
        assert len(times) == 20


def test_a_server_that_asks_whether_we_are_alive_gets_an_answer_from_a_tunnel(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    server = start(["ClientAliveInterval 1", "ClientAliveCountMax 1"])
    laptop.configure(server, account)
    loop = EventLoop()
    running = threading.Thread(target=loop.run)
    running.start()
    handler = Handler()
    with laptop.connected() as connection:
        channel = TunnelChannel(connection.transport, handler, loop.call)
        loop.call(lambda: channel.ask(*opening(("127.0.0.1", server.port))))
        # Two unanswered questions, a second apart, end a connection.
        assert not connection.wait_closed(3.5)
        assert handler.events == ["opened"]
    loop.stop()
    running.join(PATIENCE)
    loop.close()


@pytest.mark.parametrize("mac", ["umac-128-etm@openssh.com", "hmac-sha1"])
def test_a_server_with_no_mac_of_ours_is_used_with_a_cipher_that_needs_none(
    mac: str, start: StartServer, laptop: Laptop, account: Account
) -> None:
    ciphers = "Ciphers aes128-ctr,aes256-gcm@openssh.com"
    server = start([f"MACs {mac}", ciphers])
    laptop.configure(server, account)
    assert laptop.get_in()
    laptop.configure(start([ciphers]), account, "MACs umac-64@openssh.com")
    assert laptop.ours() is None
    laptop.configure(server, account, "Ciphers aes128-ctr", f"MACs {mac}")
    assert isinstance(laptop.ours(), NoCommonAlgorithm)


def test_a_dead_connection_is_found_within_the_deadline(host: SSHServer, guest: Laptop) -> None:
    with guest.connected() as connection:
        connection.probe(5)  # now the process that serves the session is there to be frozen
        host.freeze_connections()
        began = time.monotonic()
        with pytest.raises(LinkLost, match="did not answer within 1 s"):
            connection.probe(1)
        assert 0.9 < time.monotonic() - began < 3 * load()
        assert connection.transport.is_active()
        assert not connection.wait_closed(0)
        host.thaw_connections()
        assert connection.probe(5) < 5


def test_a_probe_keeps_its_deadline_when_the_connection_is_stuck(
    host: SSHServer, guest: Laptop
) -> None:
    with guest.connected() as connection:
        connection.probe(5)  # now the process that serves the session is there to be frozen
        host.freeze_connections()
        filling = threading.Thread(target=fill, args=(connection,), daemon=True)
        filling.start()
        filling.join(1)
        began = time.monotonic()
        with pytest.raises(LinkLost):
            connection.probe(1)
        assert time.monotonic() - began < 3 * load()
        connection.close()
        filling.join(PATIENCE)
        assert not filling.is_alive()
        host.thaw_connections()


def fill(connection: Connection) -> None:
    message = paramiko.Message(b"\2" + (30_000).to_bytes(4, "big") + bytes(30_000))
    try:
        while True:
            connection.transport._send_message(message)
    except (paramiko.SSHException, OSError, EOFError):
        return


def test_an_idle_connection_costs_next_to_nothing(host: SSHServer, guest: Laptop) -> None:
    with guest.connected():
        burnt = time.process_time()
        assert not threading.Event().wait(1)
        assert time.process_time() - burnt < 0.1
