"""Checks of this machine: the programs and folders that jlr uses here, and its records.

Nothing is changed and no host is asked.
"""

from __future__ import annotations

import platform
import shutil
import sys
from contextlib import suppress

from jlremote import __version__
from jlremote.doctor.diagnosis import Check, Finding, fine, warn
from jlremote.errors import JlrError
from jlremote.forwards import browser
from jlremote.laptop import paths, sessions
from jlremote.laptop.secrets import open_secrets
from jlremote.laptop.settings import settings
from jlremote.mounts import sshfs
from jlremote.mounts.system import this_system
from jlremote.text import one_line

GROUP = "this machine"
LITTLE_SPACE = 100 * 1000**2
# A keychain may wait for its owner to unlock it.
KEYCHAIN_SECONDS = 3.0
_INSTALL_SSH = (
    "`winget install Microsoft.OpenSSH.Preview` installs it; or, as an administrator,"
    " `Add-WindowsCapability -Online -Name OpenSSH.Client~~~~0.0.1.0` in PowerShell"
    if sys.platform == "win32"
    else "install OpenSSH's client: `openssh-client`, `openssh-clients` or `openssh`"
)
_GET_KEYCHAIN = {
    "win32": "Windows' Credential Manager wants a logon with a password, not one over ssh",
    "darwin": "`security default-keychain` shows which keychain the system has chosen",
}.get(
    sys.platform,
    "install `gnome-keyring` or KWallet, for a desktop session; or use an SSH agent instead",
)


def _program(_host: str | None) -> Finding:
    return fine(f"{__version__}, Python {platform.python_version()}, {platform.system()}")


def _folders(_host: str | None) -> Finding:
    folder = paths.state_directory()
    paths.log_directory()
    paths.runtime_directory()
    sessions.check_writable()
    free = shutil.disk_usage(folder).free
    if free < LITTLE_SPACE:
        return warn(f"{folder} has {free // 1000**2} MB left", "free some space there")
    return fine(str(folder))


def _settings(_host: str | None) -> Finding:
    settings.load()
    return fine("config.toml can be read")


def _ssh(_host: str | None) -> Finding:
    program = shutil.which("ssh")
    version = None if program is None else one_line(sshfs.output(program, "-V"))
    if version:
        return fine(version)
    return warn("no `ssh` of OpenSSH: your ssh config is only read in part", _INSTALL_SSH)


def _sshfs(_host: str | None) -> Finding:
    try:
        program = this_system().sshfs()
        holes = sshfs.warning(program)
    except JlrError as missing:
        hint = (missing.hint,) if missing.hint else ()
        return warn(f"{missing.message}: no `jlr mount`", *hint)
    return warn(holes) if holes else fine(program)


def _keychain(_host: str | None) -> Finding:
    keychain = open_secrets(deadline=KEYCHAIN_SECONDS)
    if keychain is None:
        why = "no keychain: passwords and passphrases are asked for each time a link starts"
        return warn(why, _GET_KEYCHAIN)
    keychain.get("jlr doctor")  # no account
    if not keychain.present:
        return warn(f"{keychain.name} does not answer: it may be locked", "unlock it")
    return fine(keychain.name)


def _browser(host: str | None) -> Finding:
    name = None
    with suppress(JlrError):  # the check of the settings reports it
        name = settings.load().chosen(host, {}).get("browser")
    trouble = None if name == "none" else browser.trouble(None if name is None else str(name))
    if trouble is None:
        return fine("a browser opens")
    return warn(trouble, "`jlr url` prints the address; `--browser NAME` or `BROWSER` names one")


def _sessions(_host: str | None) -> Finding:
    if files := ", ".join(map(str, sessions.unreadable())):
        return warn(f"records that cannot be read: {files}", "delete these files")
    known = sessions.load_all()
    up = sum(record.forwarded for record in known)
    return fine(f"{up} forwarded, {len(known) - up} stopped" if known else "none")


# Each is given the host whose settings count, `None` for those of all.
CHECKS: tuple[Check[str | None], ...] = (
    Check("jlr", _program),
    Check("folders", _folders),
    Check("settings", _settings),
    Check("ssh", _ssh),
    Check("sshfs", _sshfs),
    Check("keychain", _keychain),
    Check("browser", _browser),
    Check("sessions", _sessions, needs=("folders",)),
)
