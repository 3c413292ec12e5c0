"""Checks of this machine: the programs and folders that jlr uses here, and its records."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.doctor.findings import Check, Judgement, fine, from_error, warn
from jlremote.errors import JlrError

GROUP = "this machine"
LITTLE_SPACE = 100 * 1000**2


@dataclass(frozen=True)
class KnownSession:
    """A session in the laptop's records, and its state in its link: `None` if no link runs.

    `forwarded` tells whether its port is to be forwarded, `detail` why its state is not `up`.
    """

    name: str
    forwarded: bool
    state: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class LaptopFacts:
    """Facts about this machine."""

    program: str  # jlr's and Python's versions
    folders: JlrError | None = None  # why jlr's folders cannot be used, `None` if they can
    state_folder: str = ""  # of the records
    free_bytes: int | None = None  # the free space on its disk, `None` if unknown
    settings: JlrError | None = None  # the error in `config.toml`, `None` for none
    ssh: str | None = None  # the version of OpenSSH's client, `None` if it is not installed
    sshfs: str | JlrError = ""  # its path, or what is missing for mounts
    sshfs_warning: str | None = None  # a warning about that version
    keychain: str | None = None  # its name, `None` for none
    keychain_answers: bool = True  # whether it can be used now
    browser: str | None = None  # why no browser opens, `None` if one does
    sessions: tuple[KnownSession, ...] = ()  # the sessions in the records
    unreadable: tuple[str, ...] = ()  # paths of records that cannot be read


def _folders(facts: LaptopFacts) -> Judgement:
    if facts.folders is not None:
        return from_error(facts.folders)
    free = facts.free_bytes
    if free is not None and free < LITTLE_SPACE:
        return warn(f"{facts.state_folder} has {free // 1000**2} MB left", "free some space there")
    return fine(facts.state_folder)


def _settings(facts: LaptopFacts) -> Judgement:
    return fine("config.toml can be read") if facts.settings is None else from_error(facts.settings)


def _ssh(facts: LaptopFacts) -> Judgement:
    if facts.ssh is None:
        return warn(
            "OpenSSH's `ssh` is not installed: your ssh config is only read in part",
            "install OpenSSH's client: `openssh-client`, `openssh-clients` or `openssh`",
        )
    return fine(facts.ssh)


def _sshfs(facts: LaptopFacts) -> Judgement:
    if isinstance(facts.sshfs, JlrError):
        hint = (facts.sshfs.hint,) if facts.sshfs.hint else ()
        return warn(f"{facts.sshfs.message}: no `jlr mount`", *hint)
    if facts.sshfs_warning:
        return warn(facts.sshfs_warning)
    return fine(facts.sshfs)


def _keychain(facts: LaptopFacts) -> Judgement:
    if facts.keychain is None:
        return warn(
            "no keychain: passwords and passphrases are asked for each time a link starts",
            "on Linux: `gnome-keyring` or KWallet in a desktop session, or an SSH agent instead",
        )
    if not facts.keychain_answers:
        return warn(f"{facts.keychain} does not answer: it may be locked", "unlock it")
    return fine(facts.keychain)


def _browser(facts: LaptopFacts) -> Judgement:
    if facts.browser is not None:
        return warn(
            facts.browser, "`jlr url` prints the address; `--browser NAME` or `BROWSER` names one"
        )
    return fine("a browser opens")


def _sessions(facts: LaptopFacts) -> Judgement:
    if facts.unreadable:
        return warn(
            f"records that cannot be read: {', '.join(facts.unreadable)}", "delete these files"
        )
    forwarded = [session for session in facts.sessions if session.forwarded]
    ill = [session for session in forwarded if session.state != "up"]
    if ill:
        told = (f"`{s.name}` is {s.state or 'not connected'}{_why(s)}" for s in ill)
        return warn("; ".join(told), "`jlr status SESSION` connects it again, or says why not")
    stopped = len(facts.sessions) - len(forwarded)
    up = ", ".join(f"{session.name} up" for session in forwarded)
    also = f"{stopped} stopped" if stopped else ""
    return fine(", ".join(filter(None, (up, also))) or "none")


def _why(session: KnownSession) -> str:
    return f" ({session.detail})" if session.detail else ""


CHECKS: tuple[Check[LaptopFacts], ...] = (
    Check("jlr", lambda facts: fine(facts.program)),
    Check("folders", _folders),
    Check("settings", _settings),
    Check("ssh", _ssh),
    Check("sshfs", _sshfs),
    Check("keychain", _keychain),
    Check("browser", _browser),
    Check("sessions", _sessions, needs=("folders",)),
)
