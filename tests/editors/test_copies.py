"""Programs that copy files over ssh, and clients under a `Host *` that suits no name."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from tests.cli.terminal import Terminal
from tests.editors.conftest import SECONDS, Clients
from tests.lab.accounts import Account
from tests.long import WANTED

NAMES = ("it's a name", 'with "quotes"', "é\n$(id)", "-n")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("copies") / "tree"
    (top / "below").mkdir(parents=True)
    for name in NAMES:
        (top / name).write_text(name, encoding="utf-8")
    (top / "below" / "large").write_bytes(os.urandom(5_000_000))
    (top / "below" / "large").chmod(0o750)
    os.utime(top / "below" / "large", (1e9, 1e9))
    (top / "empty").touch()
    return top


def same(one: Path, other: Path) -> None:
    names = [sorted(str(path.relative_to(top)) for path in top.rglob("*")) for top in (one, other)]
    assert names[0] == names[1]
    for path in one.rglob("*"):
        twin = other / path.relative_to(one)
        if path.is_file():
            assert twin.read_bytes() == path.read_bytes()
        assert twin.stat().st_mode == path.stat().st_mode
        assert int(twin.stat().st_mtime) == int(path.stat().st_mtime)


def test_scp_keeps_names_modes_and_times_both_ways(
    clients: Clients, tree: Path, tmp_path: Path
) -> None:
    scp = ("scp", "-F", str(clients.config), "-rp")
    clients.ssh(clients.name, "rm -rf /var/tmp/sent")
    sent = clients.run(*scp, str(tree), f"{clients.name}:/var/tmp/sent")
    assert sent.returncode == 0, sent
    got = clients.run(*scp, f"{clients.name}:/var/tmp/sent", str(tmp_path / "got"))
    assert got.returncode == 0, got
    same(tree, tmp_path / "got")


def test_rsync_git_and_the_old_scp_work_on_the_host(
    clients: Clients, account: Account, tree: Path, tmp_path: Path
) -> None:
    ssh = f"ssh -F {clients.config}"
    old = ("scp", "-O", "-F", str(clients.config), "-rp")
    assert clients.run(*old, str(tree / "below"), "lab.jlr:old").returncode == 0
    done = clients.run(*old, "lab.jlr:old", str(tmp_path / "old"))
    assert done.returncode == 0, done
    same(tree / "below", tmp_path / "old")
    clients.ssh("lab.jlr", "git init -q --bare repo")
    script = f"""set -e
cd {tmp_path}; export GIT_SSH_COMMAND='{ssh}'
git clone -q lab.jlr:repo here; cd here; cp {tree}/below/large .
git -c user.name=a -c user.email=a@example add large
git -c user.name=a -c user.email=a@example commit -qm one
git push -q origin HEAD:main; git ls-remote origin main
"""
    pushed = clients.run("sh", "-c", script)
    assert b"refs/heads/main" in pushed.stdout, pushed
    if clients.run("sh", "-c", "command -v rsync").returncode == 0:
        copied = clients.run("rsync", "-a", "-e", ssh, f"{tree}/", "lab.jlr:synced/")
        assert copied.returncode == 0, copied
        same(tree, account.home / "synced")


@pytest.fixture
def plain(clients: Clients, tmp_path: Path) -> str:
    told = clients.laptop.jlr("config", "ssh", "--plain")
    assert not re.search("Include|Match|%", told.stdout), told
    config = tmp_path / "plain"
    config.write_text(f"Host *\n    ForwardAgent no\n{told.stdout}", encoding="utf-8")
    return str(config)


def test_asyncssh_and_openssh_read_the_plain_blocks_too(
    clients: Clients, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in clients.laptop.environment.items():
        monkeypatch.setenv(name, value)

    async def folder() -> object:
        async with asyncssh.connect(clients.name, config=plain) as connection:
            return (await connection.run("pwd")).stdout

    assert asyncio.run(folder()) == "/srv\n"
    done = clients.run("ssh", "-F", plain, "-o", "StrictHostKeyChecking=yes", "lab.jlr", "echo it")
    assert done.stdout == b"it\n", done


# Those that sshd, engines and shells make something of, and with JLR_LONG=1 all.
CODES = range(256) if WANTED else (0, 1, 2, 77, 126, 127, 128, 137, 141, 255)


def test_asyncssh_sends_signals_and_gets_every_exit_code(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in clients.laptop.environment.items():
        monkeypatch.setenv(name, value)

    async def codes() -> list[int | None]:
        async with asyncssh.connect(
            "lab.jlr", config=str(clients.config), host_key_alias="jlr"
        ) as connection:
            return [(await connection.run(f"exit {code}")).exit_status for code in CODES]

    async def interrupted() -> tuple[str, int | None]:
        async with asyncssh.connect(
            clients.name, config=str(clients.config), host_key_alias="jlr"
        ) as connection:
            trap = "trap 'echo got it; exit 9' USR1; echo ready; while :; do sleep 0.1; done"
            process = await connection.create_process(trap)
            assert await process.stdout.readline() == "ready\n"
            process.send_signal("USR1")
            told = await process.stdout.read()
            await process.wait_closed()
            return told, process.exit_status

    assert asyncio.run(interrupted()) == ("got it\n", 9)
    assert asyncio.run(codes()) == [*CODES]


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
