"""What can go wrong, by what a person would do about it.

::

    JlrError                     exit 1    an expected failure that has no better name below
    ├── Usage                    exit 2    the command line or a setting is wrong
    ├── Bug                      exit 3    we are wrong; the details are in a log file
    ├── Authentication           exit 4    the host does not accept who we are
    │   ├── NeedsAuthentication            … and nobody is there to be asked
    │   └── HostKey                        the host is not who it says it is
    │       ├── HostKeyUnknown
    │       ├── HostKeyChanged
    │       └── HostKeyRevoked
    ├── Unreachable              exit 5    no SSH connection to the host
    │   ├── NameNotResolved
    │   ├── ConnectionRefused
    │   ├── ConnectionTimedOut
    │   ├── NotSSH                         something answers, but not an SSH server
    │   │   └── HungUp                     … and hangs up before it greets
    │   ├── TooMany                        the server takes no more connections for now
    │   ├── NoCommonAlgorithm
    │   └── LinkLost                       the connection broke while it was needed
    ├── NoShell                            who logs in there is given no shell that runs scripts
    ├── NotFound                 exit 6    no such session, container, image or file
    └── Busy                     exit 7    kernels, a GPU or a port in use

Every error says what happened, with which value (`message`), and what to do next (`hint`), in lower
case and without a final period. Errors cross the link's socket as JSON, so the tree is also the
table by which a name becomes a class again.
"""

from __future__ import annotations

from typing import Any, ClassVar

EXIT_INTERRUPTED = 130


class JlrError(Exception):
    """An expected failure: one message, one hint, one exit code."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def to_json(self) -> dict[str, Any]:
        """Return the error as it crosses the link's socket."""
        return {"error": type(self).__name__, "message": self.message, "hint": self.hint}


class Usage(JlrError):
    """The command line or a setting asks for something that cannot be."""

    exit_code = 2


class Bug(JlrError):
    """A failure that nobody expected, so it is ours."""

    exit_code = 3


class Authentication(JlrError):
    """The host accepted none of the credentials that we may offer."""

    exit_code = 4


class NeedsAuthentication(Authentication):
    """A password, passphrase, code or decision is needed, and nobody can be asked."""


class HostKey(Authentication):
    """The host could not prove who it is."""


class HostKeyUnknown(HostKey):
    """No known_hosts file names the host, and it was not accepted."""


class HostKeyChanged(HostKey):
    """A known_hosts file names the host with another key."""


class HostKeyRevoked(HostKey):
    """A known_hosts file marks the host's key as revoked."""


class Unreachable(JlrError):
    """There is no SSH connection to the host."""

    exit_code = 5


class NameNotResolved(Unreachable):
    """The host's name has no address."""


class ConnectionRefused(Unreachable):
    """The host is there, and nothing listens on the port."""


class ConnectionTimedOut(Unreachable):
    """Nothing answered in time."""


class NotSSH(Unreachable):
    """Something answered that does not speak SSH."""


class HungUp(NotSSH):
    """It hung up before it greeted, as what stands before a host that is away does."""


class TooMany(Unreachable):
    """The server is there and takes no more connections for now."""


class NoCommonAlgorithm(Unreachable):
    """The server offers nothing that is still safe."""


class LinkLost(Unreachable):
    """The connection broke while something was going on."""


class NoShell(JlrError):
    """The host let us in, and its login shell ran nothing of what it was given."""


class NotFound(JlrError):
    """There is no such session, container, image or file."""

    exit_code = 6


class Busy(JlrError):
    """Somebody uses it: running kernels, a GPU, a port."""

    exit_code = 7


def _tree(root: type[JlrError]) -> dict[str, type[JlrError]]:
    table = {root.__name__: root}
    for branch in root.__subclasses__():
        table |= _tree(branch)
    return table


def from_json(message: dict[str, Any]) -> JlrError:
    """Return the error that `to_json` described; an unknown name becomes a plain `JlrError`."""
    cause = _tree(JlrError).get(str(message.get("error")), JlrError)
    return cause(str(message.get("message", "unknown error")), hint=message.get("hint"))
