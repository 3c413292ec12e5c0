"""The private names of paramiko and sshtunnel that jlr overrides, calls or sets.

A release that renames one may leave an override uncalled, such as the check of the host's key, and
no error tells. `pyproject.toml` allows only releases for which this test was run.
"""

from __future__ import annotations

import inspect
from typing import Any

import paramiko
import pytest
import sshtunnel
from paramiko import kex_gex, packet, transport

T, P = paramiko.Transport, packet.Packetizer
SIZES = "default_window_size=2097152, default_max_packet_size=32768"
CHOICES = "strict_kex=True, packetizer_class=None"
CIPHER = "block_engine, block_size, mac_engine, mac_size, mac_key"

SIGNATURES = [
    (T.__init__, f"self, sock, {SIZES}, disabled_algorithms=None, server_sig_algs=True, {CHOICES}"),
    (T._auth_trigger, "self"),
    (T._parse_channel_open, "self, m"),
    (T._parse_channel_open_failure, "self, m"),
    (T._parse_channel_open_success, "self, m"),
    (T._parse_disconnect, "self, m"),
    (T._parse_ext_info, "self, msg"),
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


@pytest.mark.parametrize(
    ("function", "expected"), SIGNATURES, ids=[function.__qualname__ for function, _ in SIGNATURES]
)
def test_a_private_function_takes_what_we_expect(function: Any, expected: str) -> None:
    assert str(inspect.signature(function)) == f"({expected})"
