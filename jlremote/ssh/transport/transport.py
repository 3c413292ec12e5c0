"""paramiko's transport without its traps; each override says which."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import paramiko
from paramiko import common
from paramiko.kex_curve25519 import KexCurve25519
from paramiko.kex_gex import KexGexSHA256

from jlremote.errors import LinkLost
from jlremote.ssh.transport.algorithms import Offer, is_sealed
from jlremote.ssh.transport.packetizer import Packetizer, send_at_once
from jlremote.ssh.wire_format import key_type, string

# paramiko logs to stderr where logging is not configured.
_LOG = logging.getLogger("paramiko")
_LOG.addHandler(logging.NullHandler())
# paramiko's waits take the wall clock: set back meanwhile, it would let them last for hours.
for _module in (paramiko.transport, paramiko.packet):
    _module.time = SimpleNamespace(time=time.monotonic, sleep=time.sleep)
# It ends a connection when it has no name for a message.
for _kind in range(256):
    common.MSG_NAMES.setdefault(_kind, f"message {_kind}")

# Begins why a channel is refused that the server's settings do not permit.
PROHIBITED = "administratively prohibited"
_RSA_SIGNATURE = re.compile(r"rsa-sha2-(?:256|512)")
# Seconds between needless wake-ups of the reading thread; `close` wakes it at once.
_IDLE_SECONDS = 5.0
# Replies that wait for the end of a key exchange; a server that asks more then gets none.
_MOST_REPLIES = 100
# The first line that a client sends, RFC 4253 section 4.2; as paramiko sends it.
GREETING = f"SSH-{paramiko.Transport._PROTO_ID}-{paramiko.Transport._CLIENT_ID}\r\n".encode()


class _GroupExchange(KexGexSHA256):  # type: ignore[misc]  # paramiko has no types
    """Diffie-Hellman with a group that the server chooses, of 2,048 bits at least.

    paramiko asks for that, and then takes a group of 1,024 bits too.
    """

    preferred_bits = 3072  # ssh's choice for AES-128

    def _parse_kexdh_gex_group(self, message: Any) -> None:
        bits = message.get_mpint().bit_length()
        if bits < self.min_bits:
            raise paramiko.SSHException(f"the server chose a Diffie-Hellman group of {bits} bits")
        message.rewind()
        super()._parse_kexdh_gex_group(message)


_KEY_EXCHANGES = {
    # The same exchange under the name that RFC 8731 gave it; some servers know only that.
    "curve25519-sha256": KexCurve25519,
    "diffie-hellman-group-exchange-sha256": _GroupExchange,
}


def _guarded(name: str) -> Callable[[Any, Any], None]:
    """Return a handler of a channel's message, in which an exception ends only the channel."""

    def guarded(channel: Any, message: Any) -> None:
        try:
            getattr(channel, name)(message)
        except Exception:  # noqa: BLE001 - a server may send anything
            _LOG.exception("a message could not be handled; its channel is closed")
            channel.fail()

    return guarded


_CHANNEL_HANDLERS = {
    kind: _guarded(handler.__name__)
    for kind, handler in paramiko.Transport._channel_handler_table.items()
}


class Transport(paramiko.Transport):  # type: ignore[misc]  # paramiko has no types
    """One SSH connection, from the first byte on a connected socket."""

    _active_check_timeout = _IDLE_SECONDS
    _kex_info = paramiko.Transport._kex_info | _KEY_EXCHANGES
    preferred_keys: tuple[str, ...] = ()  # a property of paramiko's, which adds certificates

    def __init__(self, sock: socket.socket, offer: Offer, *, has_greeted: bool = False) -> None:
        send_at_once(sock)
        super().__init__(sock, strict_kex=True, packetizer_class=Packetizer)
        self.packetizer.already_sent = GREETING if has_greeted else b""
        self._preferred_ciphers = offer.ciphers
        self._preferred_macs = offer.macs
        self._preferred_kex = tuple(name for name in offer.key_exchange if name in self._kex_info)
        self.preferred_keys = offer.host_keys
        # Compression before the login would hand a stranger's bytes to zlib.
        compressions = ("zlib@openssh.com", "none")
        self._preferred_compression = compressions if offer.compression else compressions[1:]
        self.ended = threading.Event()  # the connection is gone and its thread has finished
        self.host_key_blob = b""  # the key that the server proved to own, after `handshake`
        self.disconnection = ""  # the reason that the server gave when it disconnected
        self.server_offer: dict[str, Any] = {}  # its lists of algorithms, under paramiko's names
        self._probes: deque[threading.Event] = deque()
        self._late_replies: deque[bytes] = deque(maxlen=_MOST_REPLIES)
        self._channel_handler_table = _CHANNEL_HANDLERS
        # The answer of a server that does not even know global requests.
        self._handler_table[common.MSG_UNIMPLEMENTED] = self._parse_request_success

    def get_exception(self) -> Exception | None:
        """Return what ended the connection; bytes that paramiko cannot read are such an error."""
        error: Exception | None = super().get_exception()
        is_known = error is None or isinstance(error, paramiko.SSHException | OSError | EOFError)
        return error if is_known else paramiko.SSHException(f"the server sent no SSH: {error}")

    def handshake(self, seconds: float) -> None:
        """Exchange keys; the caller verifies the server's key before it does anything else.

        `TimeoutError` after `seconds`; if it fails `paramiko.SSHException`, `OSError`, `EOFError`.
        """
        self.banner_timeout = self.handshake_timeout = seconds
        done = threading.Event()
        self.start_client(event=done)
        if not done.wait(seconds):
            raise TimeoutError
        if not self.is_active():
            raise self.get_exception() or EOFError("the server closed the connection")
        if not self.host_key_blob:
            # Another release of paramiko may call `_verify_key` by another name.
            raise paramiko.SSHException("the server's key was not checked")

    def _really_parse_kex_init(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Keep the server's offer for the error that names it; AES-GCM needs no common MAC."""
        offer: dict[str, Any] = super()._really_parse_kex_init(*arguments, **options)
        self.server_offer = dict(offer)
        if is_sealed(self._preferred_ciphers, offer):
            offer["client_mac_algo_list"] = offer["server_mac_algo_list"] = [*self._preferred_macs]
        return offer

    def probe(self, seconds: float) -> float:
        """Return the seconds that the reply to a keepalive request took.

        Behind a download on a slow line the reply is late; then any packet counts as one.

        `set_keepalive` requests no reply, and `global_request` waits without limit on an event that
        it shares with the key exchange. Sent from a thread of its own: on a dead line the socket's
        buffer may be full, and the write would block. `LinkLost` if nothing arrives in time.
        """
        answered = threading.Event()
        self._probes.append(answered)
        began = time.monotonic()
        threading.Thread(target=self._send_probe, name="jlr probe", daemon=True).start()
        if not self._is_answered(answered, 0 if self.ended.is_set() else seconds):
            hint = "try again: the network or the server was down, or the laptop slept"
            raise LinkLost(f"the server did not answer within {seconds:g} s", hint=hint)
        if not self.is_active():
            raise LinkLost("the connection broke")
        return time.monotonic() - began

    def _is_answered(self, answered: threading.Event, seconds: float) -> bool:
        if answered.wait(seconds / 2):
            return True
        # What came before may have lain here since the machine went to sleep.
        heard = self.packetizer.packets_read
        return answered.wait(seconds / 2) or self.packetizer.packets_read != heard

    def _send_probe(self) -> None:
        request = common.cMSG_GLOBAL_REQUEST + string(b"keepalive@openssh.com") + b"\1"
        # A connection that breaks now is found by the reading thread, and by the missing answer.
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
            self._send_user_message(paramiko.Message(request))

    def close(self) -> None:
        """Close the connection. Never raises; twice is fine."""
        self.packetizer.complete_handshake()  # its timer would keep the process alive
        with contextlib.suppress(OSError, EOFError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)  # wakes the reading thread
        with contextlib.suppress(Exception):
            super().close()
        with contextlib.suppress(OSError, EOFError):
            self.sock.close()

    def run(self) -> None:
        """Read until the connection ends; then wake all threads that wait for an answer."""
        try:
            super().run()
        except (paramiko.SSHException, EOFError, OSError) as error:
            # Over a jump host that is gone even closing the socket, a channel there, can fail.
            _LOG.debug("while the connection was closed: %s", error)
        finally:
            self.active = False
            # paramiko told the channels before `active` was false; one that was registered since
            # would wait for ever. A new channel checks `active` after it was registered.
            for channel in tuple(self._channels.values()):
                channel._unlink()
            if self.completion_event is not None:
                self.completion_event.set()
            self.packetizer.complete_handshake()
            self.ended.set()
            while self._probes:
                self._probes.popleft().set()
            if self.auth_handler is not None:
                self.auth_handler.abort()

    def _verify_key(self, host_key: bytes, signature: bytes) -> None:
        """Check the signature, the key's agreed type, and that it is the same as before."""
        agreed = _RSA_SIGNATURE.sub("ssh-rsa", self.host_key_type or "")
        if key_type(host_key) != agreed:
            raise paramiko.SSHException(f"the server's key is not of the agreed type {agreed}")
        super()._verify_key(host_key, signature)
        if self.host_key_blob and host_key != self.host_key_blob:
            raise paramiko.SSHException("the server showed another key when keys were renewed")
        self.host_key_blob = host_key

    def _parse_disconnect(self, message: Any) -> None:
        message.get_int()
        self.disconnection = message.get_string().decode("utf-8", "replace")

    def _parse_ext_info(self, message: Any) -> None:
        """Refuse more extensions than the message can hold: paramiko would count to 2**32."""
        if message.get_int() > len(message.asbytes()):
            raise paramiko.SSHException("the server sent more extensions than fit")
        message.rewind()
        super()._parse_ext_info(message)

    def _parse_channel_open(self, message: Any) -> None:
        """Refuse a channel that the server opens; its kind may be any bytes."""
        message.get_string()
        number = message.get_int()
        code = common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        head = common.cMSG_CHANNEL_OPEN_FAILURE + number.to_bytes(4, "big")
        self.reply(head + code.to_bytes(4, "big") + string(b"") + string(b""))

    def _parse_channel_open_success(self, message: Any) -> None:
        number, theirs, window, packet = (message.get_int() for _ in range(4))
        channel = self._channels.get(number)
        if channel is not None:
            channel._set_remote_channel(theirs, window, packet)

    def _parse_channel_open_failure(self, message: Any) -> None:
        """Pass on the server's own words; sshd says "open failed" for what is not permitted."""
        number, code = message.get_int(), message.get_int()
        reason = message.get_string().decode("utf-8", "replace")
        if code == common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED:
            reason = f"{PROHIBITED}: {reason}"
        channel = self._channels.get(number)
        if channel is not None:
            channel.refuse(reason or f"code {code}")

    def _parse_global_request(self, message: Any) -> None:
        message.get_string()
        if message.get_boolean():
            self.reply(common.cMSG_REQUEST_FAILURE)

    def reply(self, answer: bytes) -> None:
        """Send an answer from the reading thread, which must not wait for a key exchange."""
        if self.clear_to_send.is_set():
            self._send_message(paramiko.Message(answer))
        else:
            self._late_replies.append(answer)

    def _parse_newkeys(self, message: Any) -> None:
        super()._parse_newkeys(message)
        while self._late_replies:
            self.reply(self._late_replies.popleft())

    def _parse_request_success(self, _message: Any) -> None:
        if self._probes:
            self._probes.popleft().set()

    # "No such request" is an answer to a probe as well, and the usual one.
    _parse_request_failure = _parse_request_success
