"""Ssh clients under a `Host *` of the user that suits no name below `.jlr`."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.editors.conftest import SECONDS, Clients

# Each breaks a name below `.jlr`, or makes it slow or noisy, where our block leaves it out.
HOSTILE = """
    HostName %h.invalid
    User somebody
    Port 2
    ProxyJump jump.invalid
    ProxyUseFdpass yes
    HostKeyAlgorithms rsa-sha2-512
    PubkeyAcceptedAlgorithms rsa-sha2-512
    KexAlgorithms sntrup761x25519-sha512@openssh.com
    Ciphers aes256-ctr
    MACs umac-64@openssh.com
    RekeyLimit 1M
    Compression yes
    CASignatureAlgorithms rsa-sha2-512
    RequiredRSASize 16384
    HostKeyAlias other
    UserKnownHostsFile {folder}/none
    GlobalKnownHostsFile {folder}/none
    StrictHostKeyChecking ask
    KnownHostsCommand /bin/sh -c "echo * $(cat {key}.pub)"
    VerifyHostKeyDNS yes
    UpdateHostKeys ask
    CheckHostIP yes
    HashKnownHosts yes
    IdentityFile {key}
    CertificateFile {key}-cert.pub
    IdentitiesOnly no
    IdentityAgent {folder}/agent
    AddKeysToAgent yes
    PKCS11Provider {folder}/none.so
    PubkeyAuthentication no
    PreferredAuthentications password
    PasswordAuthentication yes
    BatchMode yes
    GSSAPIAuthentication yes
    HostbasedAuthentication yes
    ConnectTimeout 1
    ConnectionAttempts 3
    ServerAliveInterval 1
    ServerAliveCountMax 1
    AddressFamily inet6
    BindAddress 192.0.2.1
    BindInterface none0
    CanonicalizeHostname always
    CanonicalDomains invalid
    CanonicalizeFallbackLocal no
    CanonicalizeMaxDots 9
    ControlMaster auto
    ControlPath {folder}/%C
    ControlPersist 60
    RequestTTY force
    RemoteCommand echo hostile
    SessionType none
    StdinNull yes
    ForkAfterAuthentication yes
    PermitLocalCommand yes
    LocalCommand echo hostile
    ClearAllForwardings yes
    LocalForward {port} 127.0.0.1:1
    ExitOnForwardFailure yes
    ForwardX11 yes
    Tunnel yes
    SetEnv PATH=/nowhere LC_HOSTILE=yes
    SendEnv *
    EscapeChar none
    LogLevel QUIET
"""


@pytest.fixture(scope="module")
def hostile(clients: Clients) -> Iterator[Clients]:
    """Clients with all of it below our block, and with a port that is taken."""
    folder = clients.laptop.folder
    key = clients.laptop.make_key("theirs")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = folder / "hostile_config"
        lines = HOSTILE.format(folder=folder, key=key, port=taken.getsockname()[1])
        config.write_text(f"{clients.config.read_text('utf-8')}Host *{lines}", encoding="utf-8")
        yield replace(clients, config=config)


# What stays the user's: ssh adds their values to ours, or it does no harm.
THEIRS = {
    *("user", "port", "hostname", "addressfamily", "bindaddress", "bindinterface"),
    *("batchmode", "connectionattempts", "compression", "hashknownhosts", "escapechar", "loglevel"),
    *(
        "gssapiauthentication",
        "macs",
        "rekeylimit",
        "casignaturealgorithms",
        "requiredrsasize",
        "globalknownhostsfile",
    ),
    *("identityfile", "certificatefile", "identityagent", "hostbasedauthentication"),
    *("canonicaldomains", "canonicalizefallbacklocal", "canonicalizemaxdots"),
    *("localforward", "localcommand", "serveralivecountmax"),
    *("sendenv", "setenv"),
}


def test_each_setting_is_ours_or_does_no_harm(hostile: Clients, clients: Clients) -> None:
    def settings(of: Clients) -> set[str]:
        return {*of.ssh("-G", of.name).stdout.decode().splitlines()}

    changed = {line.partition(" ")[0] for line in settings(hostile) - settings(clients)}
    assert changed <= THEIRS
    names = {name.lower() for name in re.findall(r"^    (\w+)", HOSTILE, re.MULTILINE)}
    assert changed >= names & THEIRS


def test_a_command_has_its_streams_variables_and_status(hostile: Clients) -> None:
    for name in (hostile.name, "lab.jlr"):
        done = hostile.ssh(name, "cat; echo $LC_HOSTILE; exit 7", given=b"given\n")
        assert (done.returncode, done.stdout) == (7, b"given\nyes\n"), done


def test_scp_and_git_work(hostile: Clients, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(3_000_000))
    ssh = ("ssh", "-F", str(hostile.config))
    sent, got = f"{hostile.name}:/var/tmp/users", tmp_path / "got"
    for argv in ((str(tmp_path / "large"), sent), (sent, str(got))):
        done = hostile.run("scp", *ssh[1:], *argv)
        assert done.returncode == 0, done
    assert got.read_bytes() == (tmp_path / "large").read_bytes()
    hostile.ssh("lab.jlr", "git init -q --bare users.git")
    listed = hostile.run(
        *("git", "ls-remote", "lab.jlr:users.git"), environment={"GIT_SSH_COMMAND": " ".join(ssh)}
    )
    assert listed.returncode == 0, listed


def test_a_terminal_begins_a_shell_and_the_words_of_an_error_arrive(hostile: Clients) -> None:
    argv = ("ssh", "-F", str(hostile.config))
    environment = hostile.laptop.environment | {"TERM": "xterm-256color"}
    terminal = Terminal((*argv, hostile.name), environment=environment)
    try:
        terminal.wait_for(":/srv# ")
        terminal.type("exit 3\r")
        assert terminal.process.wait(SECONDS) == 3
    finally:
        terminal.close()
    gone = hostile.ssh("no-such.lab.jlr", "true")
    assert gone.returncode == 255
    assert b"neither a session nor a container `no-such` on `lab`" in gone.stderr
