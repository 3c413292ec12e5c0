"""The private names of paramiko and sshtunnel that jlr overrides, calls or sets.

A release that renames one may leave an override uncalled, such as the check of the host's key, and
no error tells. `pyproject.toml` allows only releases for which this test was run.
"""

from __future__ import annotations

import inspect
import socket
from typing import Any

import paramiko
import pytest
import sshtunnel
from paramiko import common, kex_gex, packet, transport
from paramiko.kex_curve25519 import KexCurve25519

T, P = paramiko.Transport, packet.Packetizer
SIZES = "default_window_size=2097152, default_max_packet_size=32768"
CHOICES = "strict_kex=True, packetizer_class=None"
CIPHER = "block_engine, block_size, mac_engine, mac_size, mac_key"

SIGNATURES = [
    (
        T.__init__,
        f"self, sock, {SIZES}, disabled_algorithms=None, server_sig_algs=True, {CHOICES}",
    ),
    (T._auth_trigger, "self"),
    (T._check_banner, "self"),
    (T._parse_channel_open, "self, m"),
    (T._parse_channel_open_failure, "self, m"),
    (T._parse_channel_open_success, "self, m"),
    (T._parse_disconnect, "self, m"),
    (T._parse_global_request, "self, m"),
    (T._parse_newkeys, "self, m"),
    (T._parse_request_failure, "self, m"),
    (T._parse_request_success, "self, m"),
    (T._really_parse_kex_init, "self, m, ignore_first_byte=False"),
    (T._send_message, "self, data"),
    (T._send_user_message, "self, data"),
    (T._verify_key, "self, host_key, sig"),
    (T.start_client, "self, event=None, timeout=None"),
    (T.run, "self"),
    (P.__init__, "self, socket"),
    (P._trigger_rekey, "self"),
    (P.complete_handshake, "self"),
    (P.need_rekey, "self"),
    (P.read_message, "self"),
    (P.readline, "self, timeout"),
    (P.reset_seqno_in, "self"),
    (P.reset_seqno_out, "self"),
    (P.send_message, "self, data"),
    (P.set_inbound_cipher, f"self, {CIPHER}, etm=False, aead=False, iv_in=None"),
    (P.set_inbound_compressor, "self, compressor"),
    (P.set_outbound_cipher, f"self, {CIPHER}, sdctr=False, etm=False, aead=False, iv_out=None"),
    (P.set_outbound_compressor, "self, compressor"),
    (P.write_all, "self, out"),
    (kex_gex.KexGexSHA256._parse_kexdh_gex_group, "self, m"),
    (transport.ChannelMap.delete, "self, chanid"),
    (transport.ChannelMap.get, "self, chanid"),
    (transport.ChannelMap.put, "self, chanid, chan"),
    (transport.ChannelMap.values, "self"),
    (sshtunnel.SSHTunnelForwarder._connect_to_gateway, "self"),
    (sshtunnel.SSHTunnelForwarder._make_ssh_forward_handler_class, "self, remote_address_"),
    (sshtunnel.SSHTunnelForwarder._make_ssh_forward_server_class, "self, remote_address_"),
    (sshtunnel.SSHTunnelForwarder._stop_transport, "self, force=False"),
    (sshtunnel._ForwardServer.__init__, "self, *args, **kwargs"),
    (sshtunnel._ForwardServer.serve_forever, "self, poll_interval=0.5"),
]
# The methods by which the transport passes a channel its messages.
CHANNEL_MESSAGES = {
    "_feed",
    "_feed_extended",
    "_handle_close",
    "_handle_eof",
    "_handle_request",
    "_request_failed",
    "_request_success",
    "_window_adjust",
}


@pytest.mark.parametrize(
    ("function", "expected"), SIGNATURES, ids=[function.__qualname__ for function, _ in SIGNATURES]
)
def test_a_private_function_takes_what_we_expect(function: Any, expected: str) -> None:
    assert str(inspect.signature(function)) == f"({expected})"


def test_a_transport_has_the_attributes_that_we_read_and_set() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        made = paramiko.Transport(ours)
        names = (
            "_channel_handler_table _channels _handler_table _preferred_ciphers"
            " _preferred_compression _preferred_kex _preferred_macs active auth_handler"
            " banner_timeout channels_seen clear_to_send completion_event"
            " handshake_timeout host_key_type lock packetizer remote_cipher remote_version"
            " saved_exception server_extensions sock"
        )
        assert [name for name in names.split() if not hasattr(made, name)] == []
        numbers = {"_Packetizer__sequence_number_in", "_Packetizer__sequence_number_out"}
        assert {*numbers, "_Packetizer__remainder"} <= vars(made.packetizer).keys()
        made.packetizer.close()
    assert {"_PROTO_ID", "_CLIENT_ID", "_active_check_timeout", "_kex_info"} <= vars(T).keys()
    assert isinstance(T.preferred_keys, property)


def test_a_channel_gets_its_messages_by_names_that_ours_has() -> None:
    handlers = {handler.__name__ for handler in T._channel_handler_table.values()}
    assert handlers == CHANNEL_MESSAGES


def test_the_tables_and_clocks_of_paramiko_are_where_we_change_them() -> None:
    assert common.MSG_NAMES is transport.MSG_NAMES is packet.MSG_NAMES
    for module in (transport, packet):
        assert hasattr(module, "time")
    assert "diffie-hellman-group-exchange-sha256" in T._kex_info
    assert T._kex_info["curve25519-sha256@libssh.org"] is KexCurve25519
    assert all("is_aead" in T._cipher_info[f"aes{bits}-gcm@openssh.com"] for bits in (128, 256))


def test_a_forwarder_takes_the_arguments_that_we_pass_and_has_what_we_read() -> None:
    taken = inspect.signature(sshtunnel.SSHTunnelForwarder).parameters
    ours = {"ssh_address_or_host", "local_bind_address", "remote_bind_address", "logger"}
    assert ours <= taken.keys()
    source = inspect.getsource(sshtunnel.SSHTunnelForwarder)
    for name in ("_read_ssh_config(", "_consolidate_auth(", "_server_list", "_local_binds"):
        assert f"self.{name}" in source, name
    assert isinstance(sshtunnel._ForwardServer.local_port, property)
