"""Facts about this machine for `jlr doctor`; nothing is changed and no host is asked."""

from __future__ import annotations

import platform
import shutil
from contextlib import suppress
from dataclasses import replace

from jlremote import __version__
from jlremote.doctor.laptop import KnownSession, LaptopFacts
from jlremote.errors import JlrError
from jlremote.mounts import sshfs
from jlremote.mounts.system import this_system
from jlremote.storage import paths, sessions
from jlremote.storage.secrets import open_secrets
from jlremote.storage.sessions import SessionRecord
from jlremote.storage.settings import settings
from jlremote.text import one_line
from jlremote.workflow.forward import browser
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_of

# A keychain may wait for its owner to unlock it.
KEYCHAIN_SECONDS = 3.0
_NO_ACCOUNT = "jlr doctor"


def look(context: Context, host: str | None) -> LaptopFacts:
    """Return the facts about this machine, by the settings for `host`."""
    keychain = open_secrets(deadline=KEYCHAIN_SECONDS)
    if keychain is not None:
        keychain.get(_NO_ACCOUNT)
    seen = LaptopFacts(
        program=f"{__version__}, Python {platform.python_version()}, {platform.system()}",
        settings=_settings(),
        ssh=_ssh(),
        keychain=keychain.name if keychain else None,
        keychain_answers=keychain is not None and keychain.present,
        browser=_browser(host),
    )
    try:
        program = this_system().sshfs()
        holes = None if sshfs.is_repaired(program) else sshfs.warning(program)
        seen = replace(seen, sshfs=program, sshfs_warning=holes)
    except JlrError as missing:
        seen = replace(seen, sshfs=missing)
    try:
        folder = paths.state_directory()
        paths.log_directory()
        paths.runtime_directory()
        sessions.check_writable()
    except JlrError as trouble:
        return replace(seen, folders=trouble)
    return replace(
        seen,
        state_folder=str(folder),
        free_bytes=shutil.disk_usage(folder).free,
        sessions=tuple(_known(record, context) for record in sessions.load_all()),
        unreadable=tuple(map(str, sessions.unreadable())),
    )


def _ssh() -> str | None:
    """Return the version of `ssh`, `None` if there is none or it does not answer."""
    program = shutil.which("ssh")
    return None if program is None else one_line(sshfs.output(program, "-V")) or None


def _settings() -> JlrError | None:
    try:
        settings.load()
    except JlrError as wrong:
        return wrong
    return None


def _browser(host: str | None) -> str | None:
    name = None
    with suppress(JlrError):  # the check of the settings reports it
        name = settings.load().chosen(host, {}).get("browser")
    if name == "none":
        return None
    return browser.trouble(None if name is None else str(name))


def _known(record: SessionRecord, context: Context) -> KnownSession:
    """Return a session with its state in the link; a link that does not run is not started."""
    name = f"{record.host}/{record.name}"
    try:
        status = link_of(record, context).status()
    except JlrError:
        return KnownSession(name, record.forwarded)
    forward = status.forward(record.name)
    state, detail = (forward.state, forward.detail) if forward else (None, None)
    if status.state != "up":
        state, detail = status.state, status.detail
    return KnownSession(name, record.forwarded, state, detail)
