"""The password of `sudo` on the host: asked for once, tested, and kept by the link."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from jlremote.errors import Authentication, NeedsAuthentication
from jlremote.link.connection.supervisor import IN_BACKGROUND
from jlremote.place.host import sudo
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.sudo import SUDO_IF_KNOWN
from jlremote.place.runtimes.engine import engine_errors
from jlremote.place.runtimes.engine.engine_errors import EngineNotPermitted
from jlremote.place.runtimes.engine.kinds import ENGINES, Engine
from jlremote.questions import Asker
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.login.credentials import Credentials, Keychain, sudo_account

TRIES = 3  # as sudo itself


class Elevation:
    """The password of `sudo`, for all connections of one link."""

    def __init__(self, destination: Callable[[], Destination], keychain: Keychain) -> None:
        self._destination = destination
        self._keychain = keychain
        self._password: str | None = None
        self._doubted = False  # whether it may have changed on the host
        self._settled: frozenset[str] = frozenset()
        self._looked_up: frozenset[str] = frozenset()
        self._asking = threading.Lock()

    def prepare(self, host: Host, script: str, asker: Asker) -> None:
        """Obtain what `sudo` needs before a script runs; the host is asked only once.

        Raise `NeedsAuthentication` if a password is needed and there is no terminal to ask in,
        `Authentication` if none that was typed is right, `EngineNotPermitted` if `sudo` refuses.
        """
        for engine in _engines(sudo.programs(script)):
            if engine.name not in self._settled:
                with self._asking:
                    self._settle(host, engine, asker)
        for engine in _engines(sudo.programs(script, SUDO_IF_KNOWN)):
            if engine.name not in self._settled | self._looked_up:
                with self._asking, suppress(Authentication, EngineNotPermitted):
                    # Try the password of the keychain, once, without asking.
                    self._looked_up |= {engine.name}
                    self._settle(host, engine, IN_BACKGROUND)

    def password_for(self, script: bytes) -> str | None:
        """Return the password that a script needs, `None` for none."""
        text = script.decode("utf-8", "replace")
        takes = _engines(sudo.programs(text) | sudo.programs(text, SUDO_IF_KNOWN))
        return self._password if takes else None

    def refused(self) -> None:
        """Test the password again before the next command: `sudo` seems to have refused it.

        That is known from its words only, and a container's log may have the same.
        """
        self._doubted = True
        self._settled = self._looked_up = frozenset()

    def _settle(self, host: Host, engine: Engine, asker: Asker) -> None:
        if engine.name in self._settled:
            return
        known = self._password
        if known is not None and self._doubted and _is_needed(host, engine, known):
            self._password = None  # `sudo` no longer accepts it
            account = sudo_account(self._destination())
            Credentials(IN_BACKGROUND, self._keychain).was_wrong(account, known)
        if self._password is None and _is_needed(host, engine, None):
            self._password = self._obtained(host, engine, asker)
        self._doubted = False
        self._settled |= {engine.name}

    def _obtained(self, host: Host, engine: Engine, asker: Asker) -> str:
        account = sudo_account(self._destination())
        credentials = Credentials(asker, self._keychain)
        text = f"password of {self._destination().account} for `{engine.name}`:"
        refused = "`sudo` refused that password"
        without = engine_errors.without_password(engine)
        try:
            for password in credentials.candidates(account, text, TRIES, refused):
                if not _is_needed(host, engine, password):
                    credentials.was_right(account, password)
                    credentials.keep()
                    return password
                credentials.was_wrong(account, password)
        except NeedsAuthentication as unasked:
            hint = f"{unasked.hint}; or {without}"
            raise NeedsAuthentication(unasked.message, hint=hint) from unasked
        hint = f"it is usually your login password on the host; or {without}"
        raise Authentication(
            f"cannot run `{engine.name}`: `sudo` refused every password", hint=hint
        )


def _engines(programs: frozenset[str]) -> list[Engine]:
    named = (f"sudo {program}" for program in sorted(programs))
    return [ENGINES[name] for name in named if name in ENGINES]


def _is_needed(host: Host, engine: Engine, password: str | None) -> bool:
    """Return whether `sudo` wants another password than this, or than none.

    Raise `EngineNotPermitted` if it takes the password, and refuses the user.
    """
    program = engine.kind.program
    trial = sudo.trial(program) if password is None else sudo.trial_with(program, password)
    tried = run_script(host, trial)
    failure = None if tried.status == 0 else engine_errors.engine_error(engine, tried)
    if isinstance(failure, engine_errors.SudoPasswordNeeded):
        return True
    if password is not None and isinstance(failure, EngineNotPermitted):
        raise failure
    return False
