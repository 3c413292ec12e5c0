"""The translation of exceptions of paramiko, sockets and the system into our errors."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import paramiko

from jlremote import errors
from jlremote.errors import JlrError
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.login.methods import check_secrets, not_permitted
from jlremote.ssh.login.user_authentication import TOO_MANY
from jlremote.ssh.transport.transport import PROHIBITED
from jlremote.text import one_line

# sshd's words in place of a greeting: MaxStartups, and PerSourcePenalties since 9.8.
_LIMITS = ("Exceeded MaxStartups", "Not allowed at this time")
# paramiko's words for a missing algorithm, our own, and the server's list of them.
_LACKING = {
    "kex algorithm": ("key exchange", "kex_algo_list"),
    "host key": ("type of host key", "server_key_algo_list"),
    "ciphers": ("cipher", "client_encrypt_algo_list"),
    "macs": ("MAC", "client_mac_algo_list"),
}
_SHOWN = 200
_FOREIGN = (paramiko.SSHException, OSError, EOFError)


@contextmanager
def translated(destination: Destination, transport: Any = None) -> Iterator[None]:
    """Translate the exceptions of paramiko, sockets and the system into ours."""
    try:
        yield
    except JlrError:
        raise
    except _FOREIGN as error:
        raise explain(error, destination, transport) from error


def explain(error: BaseException, destination: Destination, transport: Any = None) -> JlrError:
    """Return the error of ours that says what failed, where, and what to do."""
    reason = one_line(getattr(transport, "disconnection", ""))
    login = getattr(transport, "auth_handler", None)
    if TOO_MANY in reason.lower():
        hint = _fewer(destination, login)
        return errors.Authentication(f"`{destination.place}` ended the login: {reason}", hint=hint)
    if isinstance(error, EOFError) and not reason and login is not None and login.reasons:
        return not_permitted(destination, login.reasons)
    if isinstance(error, paramiko.IncompatiblePeer):
        offered = getattr(transport, "server_offer", {})
        return _no_common_algorithm(one_line(str(error)), offered, destination.place)
    if isinstance(error, OSError):
        return _of_the_socket(error, destination)
    if transport is not None and not transport.remote_version:
        greeting = transport.packetizer.greeting
        return _not_ssh(destination.place, one_line(" ".join(greeting[:2])))
    if reason:
        return errors.LinkLost(f"`{destination.place}` ended the connection: {reason}")
    if isinstance(error, EOFError):
        hint = "look for the reason in the log of its SSH server"
        return errors.LinkLost(f"`{destination.place}` closed the connection", hint=hint)
    message = f"the SSH connection to `{destination.place}` failed: {one_line(str(error))}"
    return errors.Unreachable(message, hint=f"`ssh -v {destination.host}` shows more")


def _fewer(destination: Destination, login: Any) -> str:
    """Return what to do about too many attempts: keys count as well as passwords."""
    tried = getattr(login, "attempts", {})
    passwords = tried.get("password", 0) + tried.get("keyboard-interactive", 0)
    check = check_secrets(destination)
    keys = "set `IdentitiesOnly yes` and one `IdentityFile` in your ssh config, to offer fewer keys"
    if not passwords:
        return keys
    return f"{check}; {keys}" if tried.get("publickey", 0) > 1 else check


def _no_common_algorithm(reason: str, offered: dict[str, Any], place: str) -> JlrError:
    message = f"`{place}` offers no safe algorithm: {reason}"
    for words, (kind, names) in _LACKING.items():
        if words in reason and offered.get(names):
            theirs = one_line(", ".join(offered[names]))[:_SHOWN]
            message = f"`{place}` and jlr have no {kind} in common; it has {theirs}"
    hint = "check the algorithms in your ssh config, or have the SSH server updated; jlr accepts"
    return errors.NoCommonAlgorithm(message, hint=f"{hint} no CBC, 3DES, MD5 or SHA-1")


def _of_the_socket(error: OSError, destination: Destination) -> JlrError:
    place = destination.place
    if isinstance(error, socket.gaierror):
        hint = "check the name, `HostName` in your ssh config, and the network or VPN"
        message = f"`{destination.hostname}` has no address: {error.strerror}"
        return errors.NameNotResolved(message, hint=hint)
    if isinstance(error, ConnectionRefusedError):
        hint = "check that the host is up, and that its SSH server listens on that port"
        return errors.ConnectionRefused(f"`{place}` refused the connection", hint=hint)
    if isinstance(error, TimeoutError) or error.errno == errno.ETIMEDOUT:
        hint = "check that the host is up, and your network or VPN; see `ConnectTimeout`"
        return errors.ConnectionTimedOut(f"`{place}` did not answer in time", hint=hint)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return errors.LinkLost(f"the connection to `{place}` broke", hint="try again")
    reason = error.strerror or str(error)
    ours = destination.bind_address if error.errno == errno.EADDRNOTAVAIL else None
    hint = "check `BindAddress` in your ssh config" if ours else "check the network or VPN"
    return errors.Unreachable(f"cannot reach `{place}`: {reason}", hint=hint)


def _not_ssh(place: str, greeting: str) -> JlrError:
    """Return why there was no greeting; over its limits sshd itself says so."""
    shown = greeting[:100]
    if any(words in greeting for words in _LIMITS):
        hint = "try again in some minutes: too many came at once, or logins failed before"
        message = f"`{place}` accepts no more connections at present: {shown}"
        return errors.TooMany(message, hint=hint)
    message, hint = f"`{place}` did not answer as an SSH server: it", "check the port"
    if shown:
        return errors.NotSSH(f"{message} said `{shown}`", hint=hint)
    hint += "; a server that limits connections hangs up like this too"
    return errors.HungUp(f"{message} hung up before it greeted", hint=hint)


def explain_channel(refusal: str, place: str, through: str) -> JlrError:
    """Return the error for a refusal of the server `through` to connect to another place."""
    reason = one_line(refusal)
    if reason.startswith(PROHIBITED):
        hint = "ask its administrator: `AllowTcpForwarding` and `PermitOpen` permit them"
        message = f"`{through}` does not permit connections to `{place}`: {reason}"
        return errors.Unreachable(message, hint=hint)
    if "refused" in reason.lower():
        return errors.ConnectionRefused(f"`{place}` refused the connection from `{through}`")
    if "timed out" in reason.lower():
        return errors.ConnectionTimedOut(f"`{place}` did not answer `{through}` in time")
    if "not known" in reason.lower() or "resolv" in reason.lower():
        return errors.NameNotResolved(f"`{through}` has no address for `{place}`: {reason}")
    return errors.Unreachable(f"`{through}` cannot reach `{place}`: {reason}")
