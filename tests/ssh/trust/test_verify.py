"""The verification of a host's key, with known_hosts files and a person in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization.ssh import SSHCertificateType
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.errors import HostKey, HostKeyChanged, NeedsAuthentication
from jlremote.ssh.config.destination import Algorithms, Destination, HostKeyRules, LoginRules
from jlremote.ssh.trust.host_certificates import read_certificate, why_invalid
from jlremote.ssh.trust.host_keys import verify
from jlremote.ssh.trust.known_hosts import append, format_line
from tests.link.fakes import FakePerson as Person
from tests.long import WANTED
from tests.ssh.certificates import blob_of, certificate, new_key, wire_blob

HOST = "lab.example.org"


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return tmp_path / "ssh" / "known_hosts"


def destination(known: Path, *, port: int = 22, batch: bool = False, **rules: Any) -> Destination:
    host_key, login = HostKeyRules(user_files=(known,), **rules), LoginRules(batch=batch)
    return Destination("lab", HOST, port, "me", host_key=host_key, login=login)


def remember(known: Path, name: str, key: Ed25519PrivateKey, marker: str = "") -> None:
    line = format_line(name, wire_blob(key), hashed=False)
    append(known, f"{marker} ".encode() + line if marker else line)


def host_certificate(key: Ed25519PrivateKey, authority: Ed25519PrivateKey, **how: Any) -> bytes:
    how.setdefault("kind", SSHCertificateType.HOST)
    how.setdefault("names", (HOST.encode(),))
    return blob_of(certificate(key, authority, **how))


@pytest.mark.parametrize("marker", ["@cert-authority", "@revoked"])
def test_an_authority_or_a_revoked_key_makes_no_other_key_a_changed_one(
    known: Path, marker: str
) -> None:
    person = Person("yes")
    remember(known, HOST, new_key(), marker)
    verify(destination(known), wire_blob(new_key()), person)
    assert len(person.questions) == 1


def test_a_bare_key_behind_a_foreign_certificate_has_changed_beside_a_line(known: Path) -> None:
    remember(known, HOST, new_key(), "@cert-authority")
    remember(known, HOST, new_key())
    with pytest.raises(HostKeyChanged, match=f"{known}:2 has"):
        verify(destination(known), host_certificate(new_key(), new_key()), Person("yes"))


def test_a_certificate_for_all_names_or_a_pattern_counts(known: Path) -> None:
    authority = new_key()
    remember(known, HOST, authority, "@cert-authority")
    person = Person()
    for names in ((), (b"*.example.org",)):
        verify(destination(known), host_certificate(new_key(), authority, names=names), person)
    assert person.questions == []


def test_a_forged_signature_does_not_count(known: Path) -> None:
    key, authority = new_key(), new_key()
    remember(known, HOST, authority, "@cert-authority")
    blob = host_certificate(key, authority)
    forged = blob[:-1] + bytes((blob[-1] ^ 1,))
    with pytest.raises(NeedsAuthentication):
        verify(destination(known), forged, Person())


def test_an_authority_with_a_forbidden_algorithm_does_not_count(known: Path) -> None:
    authority = new_key()
    remember(known, HOST, authority, "@cert-authority")
    algorithms = Algorithms(authorities=("rsa-sha2-512",))
    strict = replace(destination(known), algorithms=algorithms)
    with pytest.raises(NeedsAuthentication):
        verify(strict, host_certificate(new_key(), authority), Person())


def test_a_broken_certificate_is_refused(known: Path) -> None:
    blob = host_certificate(new_key(), new_key())
    with pytest.raises(HostKey, match="its certificate cannot be read"):
        verify(destination(known), blob[:60], Person("yes"))


@pytest.mark.parametrize(
    ("strict", "batch", "command"),
    [
        ("ask", False, "`ssh lab`"),
        ("yes", False, "`ssh -o StrictHostKeyChecking=ask lab`"),
        ("ask", True, "`ssh -o BatchMode=no lab`"),
        ("yes", True, "`ssh -o StrictHostKeyChecking=ask -o BatchMode=no lab`"),
    ],
)
def test_the_hint_is_a_command_that_really_asks(
    strict: str, batch: bool, command: str, known: Path
) -> None:
    person = Person("SHA256:AAAA")  # of another key
    with pytest.raises(HostKey) as caught:
        verify(destination(known, strict=strict, batch=batch), wire_blob(new_key()), person)
    assert str(caught.value.hint).startswith(f"{command} asks whether to accept it")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "10.0.0.1", ""])
def test_a_loopback_address_needs_no_known_key_where_the_config_says_so(
    address: str, known: Path
) -> None:
    rules = destination(known, strict="yes", trusts_loopback=True)
    blob = wire_blob(new_key())
    if address in {"10.0.0.1", ""}:
        with pytest.raises(HostKey):
            verify(rules, blob, Person(), address)
    else:
        verify(rules, blob, Person(), address)
        assert not known.exists()
        with pytest.raises(HostKey):
            verify(destination(known, strict="yes"), blob, Person(), address)


@settings(max_examples=300 if WANTED else 60, derandomize=True)
@given(st.data())
def test_no_changed_certificate_is_a_bug_or_proves_a_host(data: st.DataObject) -> None:
    line = certificate(new_key(), new_key(), kind=SSHCertificateType.HOST, names=(b"h",))
    blob = bytearray(blob_of(line))
    # Behind its first string, which makes it a certificate.
    at = data.draw(st.integers(36, len(blob) - 1))
    before = bytes(blob)
    blob[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=5))
    try:
        read = read_certificate(bytes(blob))
    except ValueError:
        return
    assert why_invalid(read, "h", None) is not None or bytes(blob) == before


def test_a_certificate_of_an_unknown_type_of_key_is_not_readable() -> None:
    blob = blob_of(certificate(new_key(), new_key(), kind=SSHCertificateType.HOST))
    unknown = blob.replace(b"\x0bssh-ed25519", b"\x0bssh-\0\0\0\x00519")
    assert unknown != blob
    with pytest.raises(ValueError, match="nsupported"):
        read_certificate(unknown)
