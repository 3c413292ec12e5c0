"""Every error that jlr expects, sorted by what the user does about it.

An error that is defined in another package is drawn with that package's name. ::

    JlrError                     exit 1    an expected failure with no better name below
    ├── Usage                    exit 2    the command line or a setting is wrong
    ├── Bug                      exit 3    jlr is wrong; the details are in a log file
    ├── Authentication           exit 4    the host does not accept the login
    │   ├── NeedsAuthentication            … and there is no terminal to ask on
    │   └── HostKey                        the host cannot prove its identity
    │       └── HostKeyChanged
    ├── Unreachable              exit 5    no SSH connection to the host
    │   ├── NameNotResolved
    │   │   └── UnknownPlace     exit 6    … and it is neither a host nor a session known here
    │   ├── ConnectionRefused
    │   ├── ConnectionTimedOut
    │   ├── NotSSH                         something answers, but not an SSH server
    │   │   └── HungUp                     … and hangs up before it greets
    │   ├── TooMany                        the server takes no more connections for now
    │   ├── NoCommonAlgorithm
    │   ├── LinkLost                       the connection broke while it was needed
    │   │   └── NotBegun                   … before a script began on the host
    │   ├── NoAnswer             jupyter   Jupyter does not answer through the forward
    │   └── NoWebSocket          jupyter   HTTP passes the forward, WebSocket does not
    ├── NotFound                 exit 6    no such session, container, image or file
    ├── Busy                     exit 7    kernels, a GPU or a port in use
    │   └── JustCreated          place     another command created that container a moment ago
    ├── TimeOver                 exit 124  it did not happen in time, as `timeout` ends
    ├── NoShell                            the login shell on the host runs no scripts
    ├── OddAnswer                place     a program there answered in no form that it has
    ├── NoLink                   link      no link runs for the host
    ├── LinkStuck                link      the host's link does not answer
    ├── OtherVersion             link      … it was started by another version of jlr
    ├── Unproved                 link      … it does not know whether a session runs
    ├── EngineUnusable           place     the container engine cannot be used
    │   ├── EngineMissing        place     … it was not found
    │   ├── EngineNotPermitted   place     … the user may not use it
    │   │   └── SudoPasswordNeeded  place
    │   ├── EngineNotRunning     place     … its daemon does not run
    │   │   └── EngineSilent     place     … its daemon does not answer
    │   └── DockerIsPodman       place     … it is podman under docker's name
    ├── EngineRefused            jobs      the engine does not list its containers
    ├── AccessRefused            jupyter   Jupyter wants a password
    ├── IdentityRefused          jupyter   … it does not take its own token
    ├── SchedulerSilent          place     the scheduler does not answer
    ├── CannotAsk                gpus      nothing on the host knows its GPUs
    │   ├── NvidiaSmiMissing     gpus      … as far as was looked, it has no `nvidia-smi`
    │   └── NvidiaSmiSilent      gpus      … `nvidia-smi` does not answer
    └── CannotTell               gpus      whether a GPU is free cannot be told

Every error says what happened, with which value (`message`), and what to do next (`hint`), in lower
case and without a final period. Errors cross the link's socket as JSON, so the tree is also the
table in which a name is looked up to make the error again.
"""

from __future__ import annotations

from typing import Any, ClassVar

EXIT_INTERRUPTED = 130


class JlrError(Exception):
    """An expected failure: one message, one hint, one exit code."""

    exit_code: ClassVar[int] = 1
    chosen_by: ClassVar[str] = ""  # the long option that chose what fails, where it is not named

    def __init__(self, message: str, *, hint: str | None = None, state: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.state = state  # the session's or port's `State` that it stands for, if it does

    def to_json(self) -> dict[str, Any]:
        """Return the error as it crosses the link's socket."""
        told = {"message": self.message, "hint": self.hint, "state": self.state}
        return {"error": type(self).__name__, **told}


class Usage(JlrError):
    """The command line or a setting is wrong."""

    exit_code = 2
    usage = ""  # how the command is called, where it was called wrongly


class Bug(JlrError):
    """A failure that jlr does not expect: a mistake in jlr."""

    exit_code = 3


class Authentication(JlrError):
    """The host accepted none of the credentials that were offered."""

    exit_code = 4


class NeedsAuthentication(Authentication):
    """A password, passphrase, code or decision is needed, and there is no terminal to ask on."""


class HostKey(Authentication):
    """The host could not prove its identity."""


class HostKeyChanged(HostKey):
    """A known_hosts file has another key for the host."""


class Unreachable(JlrError):
    """There is no SSH connection to the host."""

    exit_code = 5


class NameNotResolved(Unreachable):
    """The host's name has no address."""


class UnknownPlace(NameNotResolved):
    """What was typed is nothing that is known here, and no name of a host either."""

    exit_code = 6


class ConnectionRefused(Unreachable):
    """The host answers, and nothing listens on the port."""


class ConnectionTimedOut(Unreachable):
    """Nothing answered in time."""


class NotSSH(Unreachable):
    """Something answered that does not speak SSH."""


class HungUp(NotSSH):
    """A proxy or a load balancer closed the connection before an SSH server greeted."""


class TooMany(Unreachable):
    """The SSH server takes no more connections for now."""


class NoCommonAlgorithm(Unreachable):
    """The server offers no algorithm that is still safe."""


class LinkLost(Unreachable):
    """The connection broke while it was in use."""


class NotBegun(LinkLost):
    """The connection broke, or was silent, before a script began on the host."""


class NoShell(JlrError):
    """The login worked, but the login shell ran no script."""


class NotFound(JlrError):
    """There is no such session, container, image or file."""

    exit_code = 6


class Busy(JlrError):
    """Something is in use: kernels, a GPU, a port or a name."""

    exit_code = 7


class TimeOver(JlrError):
    """What was waited for did not happen in time."""

    exit_code = 124


def _tree(root: type[JlrError]) -> dict[str, type[JlrError]]:
    table = {root.__name__: root}
    for branch in root.__subclasses__():
        table |= _tree(branch)
    return table


def from_json(message: dict[str, Any]) -> JlrError:
    """Return the error that `to_json` described; an unknown name becomes a plain `JlrError`."""
    cause = _tree(JlrError).get(str(message.get("error")), JlrError)
    text, state = str(message.get("message", "unknown error")), str(message.get("state", ""))
    return cause(text, hint=message.get("hint"), state=state)
