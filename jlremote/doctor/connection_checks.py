"""Checks of the connection: name, port, host key, login, shell and forwarding.

The link connects in one go and reports the first error; all that lies before it has worked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jlremote.doctor.diagnosis import Check, Finding, fail, fine, from_error, warn
from jlremote.errors import (
    Authentication,
    HostKey,
    JlrError,
    LinkLost,
    NameNotResolved,
    NoCommonAlgorithm,
    NoShell,
    NotSSH,
    Unreachable,
)

CONFIG, NAME, PORT, SSH = "ssh config", "name", "port", "ssh server"
KEY, LOGIN, SHELL = "host key", "login", "shell"


@dataclass(frozen=True)
class ConnectionFacts:
    """The result of an attempt to connect."""

    error: JlrError | None = None  # why it failed, `None` if it did not
    asked_for_key: bool = False  # whether it failed at the question whether to trust the host's key
    notes: tuple[str, ...] = ()  # what the user's ssh settings ask for that jlr does not do
    address: str = ""  # the host's own address, as its SSH server sees it; empty if unknown
    port: str = ""  # its TCP port there
    user: str = ""  # the name on the host
    refusal: str | None = None  # why its SSH server permits no forwarding, `None` if it does
    sockets: bool | None = None  # whether it connects to unix sockets there, `None` if unknown


def failed_at(facts: ConnectionFacts) -> str | None:
    """Return the name of the check that the error belongs to, `None` for no error."""
    error = facts.error
    if error is None:
        return None
    if isinstance(error, HostKey) or facts.asked_for_key:
        return KEY
    stages: tuple[tuple[str, tuple[type[JlrError], ...]], ...] = (
        (SHELL, (NoShell,)),
        (LOGIN, (Authentication,)),
        (NAME, (NameNotResolved,)),
        (SSH, (NotSSH, NoCommonAlgorithm, LinkLost)),
        (PORT, (Unreachable,)),
    )
    return next((stage for stage, kinds in stages if isinstance(error, kinds)), CONFIG)


def _stage(
    name: str, well: Callable[[ConnectionFacts], str], *needs: str
) -> Check[ConnectionFacts]:
    def judge(facts: ConnectionFacts) -> Finding:
        if facts.error is not None and failed_at(facts) == name:
            return from_error(facts.error)
        return fine(well(facts))

    return Check(name, judge, needs)


def _config(facts: ConnectionFacts) -> Finding:
    if facts.notes:
        return warn("; ".join(facts.notes))
    return _stage(CONFIG, lambda _: "can be read").judge(facts)


def _forwarding(facts: ConnectionFacts) -> Finding:
    if facts.refusal is not None:
        return fail(
            f"the SSH server permits no forwarding: {facts.refusal}",
            "ask its administrator for `AllowTcpForwarding local` in `sshd_config`, and for "
            "`PermitOpen any` if that is set",
        )
    if facts.sockets is False:
        return warn(
            "permitted to ports and not to unix sockets: a server that jlr starts on the host "
            "itself gets a port, which its other users can see",
            "ask its administrator for `AllowStreamLocalForwarding local` in `sshd_config`",
        )
    return fine("permitted")


CHECKS: tuple[Check[ConnectionFacts], ...] = (
    Check(CONFIG, _config),
    _stage(NAME, lambda _: "has an address", CONFIG),
    _stage(PORT, lambda f: f"{f.address} port {f.port}" if f.address else "answers", NAME),
    _stage(SSH, lambda _: "speaks SSH", PORT),
    _stage(KEY, lambda _: "is the known one", SSH),
    _stage(LOGIN, lambda f: f"as {f.user}" if f.user else "is accepted", KEY),
    _stage(SHELL, lambda _: "runs scripts", LOGIN),
    Check("forwarding", _forwarding, needs=(SHELL,)),
)
