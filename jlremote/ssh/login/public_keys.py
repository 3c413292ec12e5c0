"""The publickey method: ask which keys the server accepts, and sign only with those."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jlremote.ssh.config.destination import Destination
from jlremote.ssh.login.agent import Agent, AgentFailure
from jlremote.ssh.login.credentials import Credentials, passphrase_account
from jlremote.ssh.login.identities import Identity, algorithms_for
from jlremote.ssh.login.key_files import PassphraseNeeded, PrivateKey, UnusableKey, load, sign
from jlremote.ssh.login.user_authentication import Outcome, UserAuthentication
from jlremote.ssh.trust.host_certificates import public_blob

_LOG = logging.getLogger("jlremote.ssh")


@dataclass
class PublicKeys:
    """Offers identities one after the other."""

    _wire: UserAuthentication
    _destination: Destination
    _credentials: Credentials
    agent: Agent | None
    # labels of the keys that the server was asked about
    offered: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # why keys are of no use, a sentence each
    _loaded: dict[Path, PrivateKey] = field(default_factory=dict)
    _done: set[bytes] = field(default_factory=set)

    def attempts(self, identities: Sequence[Identity]) -> Iterator[Outcome]:
        """Yield the server's answer to each key that is offered."""
        for identity in identities:
            try:
                outcome = self._offer(identity)
            except (UnusableKey, AgentFailure) as problem:
                _LOG.info("key %s is not used: %s", identity.label, problem)
                self.problems.append(f"key {identity.label}: {problem}")
                continue
            if outcome is not None:
                yield outcome

    def _offer(self, identity: Identity) -> Outcome | None:
        blob = identity.blob
        asked_first = blob is not None
        if blob is None:  # an old format whose public half is encrypted as well
            assert identity.path is not None
            blob = public_blob(self._private(identity.path).public_key())
        algorithm = algorithms_for(
            blob, self._destination.algorithms.public_keys, self._wire.server_signatures()
        )
        if algorithm is None or blob in self._done:
            return None
        self.offered.append(identity.label)
        refused = self._wire.wants_key(algorithm, blob) if asked_first else None
        if refused is not None:
            return refused
        outcome = self._wire.key(
            algorithm, blob, lambda data, name: self._sign(identity, data, name)
        )
        if outcome.partial:
            self._done.add(blob)  # a server that wants two keys wants a different one now
        return outcome

    def _sign(self, identity: Identity, data: bytes, algorithm: str) -> bytes:
        if identity.agent is not None:
            return identity.agent.sign(identity.held, data, algorithm)
        assert identity.path is not None
        return sign(self._private(identity.path), data, algorithm)

    def _private(self, path: Path) -> PrivateKey:
        if path not in self._loaded:
            self._loaded[path] = self._unlock(path)
        return self._loaded[path]

    def _unlock(self, path: Path) -> PrivateKey:
        """Load a key; ask for its passphrase as often as ssh does; an empty answer skips it."""
        try:
            return load(path, None)
        except PassphraseNeeded:
            account = passphrase_account(path)
            remembered = self._credentials.remembered(account)
            if remembered is not None:
                with contextlib.suppress(PassphraseNeeded):
                    return load(path, remembered)
                self._credentials.was_wrong(account, remembered)
            if self._destination.login.batch:
                raise
        for _ in range(self._destination.login.prompts):
            passphrase = self._credentials.ask("passphrase", f"passphrase of the key {path}:")
            if not passphrase:
                break
            with contextlib.suppress(PassphraseNeeded):
                key = load(path, passphrase)
                self._credentials.was_right(account, passphrase)
                return key
        raise UnusableKey("its passphrase was not given")
