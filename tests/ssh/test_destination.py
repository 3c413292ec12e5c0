"""What becomes of the user's settings, with and without `ssh` installed."""

from __future__ import annotations

import getpass
import itertools
import os
import pwd
import shutil
import string
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jlremote.errors import Usage
from jlremote.laptop.typed_place import check_host
from jlremote.ssh.config.destination import Destination, HostKeyRules, LoginRules, resolve
from jlremote.ssh.config.tokens import TokenValues, expand_path

HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)  # of ssh, whatever the variable says
TOKENS = TokenValues("lab", "lab.example.org", 2222, "me", jump="bastion")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture
def without_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jlremote.ssh.config.ssh_settings.shutil.which", lambda _name: None)


def resolved(config: Path, text: str, host: str = "lab") -> Destination:
    config.write_text(text)
    return resolve(host, config)


@pytest.mark.parametrize(
    "host",
    ["", "me@", "-oProxyCommand=id", "me@-x", "a b", "a\nb", "a\0b", "a\x1b[2J", "\u202eb", "a\tb"],
)
def test_a_host_that_could_be_an_option_or_not_be_shown_is_refused(host: str, config: Path) -> None:
    with pytest.raises(Usage) as caught:
        resolved(config, "", host)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("form", ["a{}b", "u{}v@host", "u{}@host"])
def test_without_ssh_a_host_may_hold_no_character_that_ssh_refuses(
    form: str, config: Path, without_ssh: None
) -> None:
    """A `ProxyCommand` with `%h` would run `a;id` in a shell."""
    ssh = ("ssh", "-F", "/dev/null", "-G", "--")
    for letter in {*string.punctuation} - {*"@:/[]%"}:
        host = form.format(letter)
        run = subprocess.run((*ssh, host), capture_output=True, check=False)
        if run.returncode != 0 or host == "a,b":  # an older ssh takes a comma
            with pytest.raises(Usage):
                resolved(config, "ProxyCommand nc %h %p", host)
        else:
            assert resolved(config, "ProxyCommand nc %h %p", host).proxy_command


@pytest.mark.parametrize(("written", "meant"), [("/run/%%x", "/run/%x"), ("/run/%h", "/run/lab")])
def test_the_agents_tokens_are_replaced_once(config: Path, written: str, meant: str) -> None:
    assert resolved(config, f"IdentityAgent {written}").login.identity_agent == meant


LATER = ("IdentityFile", "ProxyCommand", "ProxyJump", "UserKnownHostsFile")
SETTINGS = (
    *(*LATER, "HostName", "User", "HostKeyAlias", "Port", "ConnectTimeout"),
    *("IdentityAgent", "BindAddress", "Match host"),
)


@given(
    name=st.sampled_from(SETTINGS),
    value=st.text(st.sampled_from("aB0 -@:,./~%h$'{}\"[]!*"), max_size=25),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_is_read_as_by_ssh_or_is_a_usage_error(
    name: str, value: str, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(f"{name} {value}\n")
    told = subprocess.run(
        ("ssh", "-G", "-F", str(config), "lab"), capture_output=True, text=True, check=False
    )
    try:
        destination = resolve("lab", config)
    except Usage:
        # Ours looks at a few values that `ssh -G` prints without a look: tokens, variables, jumps.
        assert told.returncode != 0 or name in LATER
        return
    assert told.returncode == 0
    read = {f"{each} {getattr(destination, each)}" for each in ("hostname", "port", "user")}
    assert read <= set(told.stdout.splitlines())


@pytest.mark.parametrize("host", ["lab", "me@lab", "ssh://me@lab:2200", "LAB.example.org", "::1"])
def test_the_forms_of_a_host_are_those_of_ssh(host: str, config: Path) -> None:
    check_host(host)
    destination = resolved(config, "", host)
    assert destination.user == ("me" if "@" in host else getpass.getuser())
    assert destination.port == (2200 if "2200" in host else 22)
    assert destination.host == host.removeprefix("ssh://").removeprefix("me@").removesuffix(":2200")


def test_every_setting_of_a_connection_is_read(config: Path, tmp_path: Path) -> None:
    destination = resolved(
        config,
        f"""
        Host lab
            HostName LAB.Example.org
            Port 2222
            User someone
            IdentityFile {tmp_path}/one-%r
            IdentityFile "{tmp_path}/two words"
            CertificateFile ~/cert-%h
            IdentitiesOnly yes
            IdentityAgent none
            HostKeyAlias Alias
            UserKnownHostsFile {tmp_path}/a "{tmp_path}/b c"
            GlobalKnownHostsFile none
            StrictHostKeyChecking accept-new
            HashKnownHosts yes
            ConnectTimeout 7
            AddressFamily inet6
            BindAddress 127.0.0.9
            Compression yes
            ServerAliveInterval 11
            ServerAliveCountMax 4
            PreferredAuthentications password,publickey,gssapi-with-mic
            NumberOfPasswordPrompts 2
            ProxyCommand relay %h %p %r %n %%
        """,
    )
    assert destination.account == "someone@[lab.example.org]:2222"
    assert destination == replace(
        destination,
        host_key=HostKeyRules(
            user_files=(tmp_path / "a", tmp_path / "b c"),
            alias="alias",
            strict="accept-new",
            hash_names=True,
        ),
        login=LoginRules(
            identity_files=(tmp_path / "one-someone", tmp_path / "two words"),
            certificate_files=(HOME / "cert-lab.example.org",),
            identities_only=True,
            identity_agent="none",
            methods=("password", "publickey"),
            prompts=2,
        ),
        connect_timeout=7,
        address_family="inet6",
        bind_address="127.0.0.9",
        compression=True,
        alive_interval=11,
        alive_count=4,
        proxy_command="relay lab.example.org 2222 someone lab %",
    )


def test_relative_paths_begin_in_the_folder_of_the_person(config: Path, tmp_path: Path) -> None:
    config.write_text("""
        Host lab
            IdentityFile keys/%h
            CertificateFile cert
            IdentityAgent run/%h.agent
            UserKnownHostsFile known
            GlobalKnownHostsFile /etc/known
            RevokedHostKeys revoked
            ProxyJump bastion
        Host bastion
            IdentityFile ~/key
            IdentityFile ../key
        """)
    destination = resolve("lab", config, tmp_path)
    login, keys = destination.login, destination.host_key
    assert login.identity_files == (tmp_path / "keys/lab",)
    assert login.certificate_files == (tmp_path / "cert",)
    assert login.identity_agent == str(tmp_path / "run/lab.agent")
    assert keys.user_files == (tmp_path / "known",)
    assert keys.global_files == (Path("/etc/known"),)
    assert keys.revoked == tmp_path / "revoked"
    assert destination.jump is not None
    assert destination.jump.login.identity_files == (HOME / "key", tmp_path / "../key")


@pytest.mark.parametrize(
    ("command", "beside"),
    [
        *((command, True) for command in ("./proxy %h", "exec ../proxy", "bin/proxy a")),
        *((command, False) for command in ("nc %h %p", "/bin/nc a/b", "~/proxy", "ssh b -W %h")),
    ],
)
def test_only_a_proxy_command_with_a_relative_path_runs_beside_the_person(
    command: str, beside: bool, config: Path, tmp_path: Path
) -> None:
    """The folder may be on a mount of this very host."""
    config.write_text(f"ProxyCommand {command}\n")
    assert resolve("lab", config, tmp_path).proxy_folder == (tmp_path if beside else None)


def test_a_chain_of_jumps_is_resolved_from_the_far_end_each_with_its_own_settings(
    config: Path,
) -> None:
    destination = resolved(
        config,
        """
        Host lab
            ProxyJump first,me@second:2200
        Host first
            HostName 10.0.0.1
            User anna
            ProxyJump zero
        Host second
            HostName 10.0.0.2
            User ignored
            ProxyJump ignored-too
        """,
    )
    second = destination.jump
    assert second is not None
    assert (second.hostname, second.port, second.user) == ("10.0.0.2", 2200, "me")
    first = second.jump
    assert first is not None
    assert (first.hostname, first.user) == ("10.0.0.1", "anna")
    zero = first.jump
    assert zero is not None
    assert (zero.hostname, zero.jump) == ("zero", None)


@pytest.mark.parametrize(
    "jump", ["vs3@%h:2403", "%r@%n-gw", "%k", "me@%%b", "first-%p,%r@%h:23", "one,two-%n"]
)
def test_tokens_in_a_jump_host_mean_what_they_mean_to_ssh(
    jump: str, config: Path, tmp_path: Path
) -> None:
    text = f"""
        Host lab
            HostName lab.example.org
            User anna
            Port 2200
            HostKeyAlias known-as
            ProxyJump {jump}
    """
    hop = resolved(config, text).jump
    assert hop is not None
    # ssh runs another ssh to the last jump host, which is this one.
    stand_in = tmp_path / "ssh"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >&2\n')
    stand_in.chmod(0o755)
    real = shutil.which("ssh")
    run = subprocess.run(
        ("ssh", "-F", str(config), "lab"),
        executable=real,
        env={"PATH": str(tmp_path), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    words = run.stderr.splitlines()
    words = words[: words.index("-W") + 3]
    options = dict(itertools.pairwise(words))
    assert words[-1] == hop.host
    assert options.get("-l", getpass.getuser()) == hop.user
    assert options.get("-p", "22") == str(hop.port)
    before = options.get("-J", "").rpartition("@")[2].partition(":")[0]
    assert before == (hop.jump.hostname if hop.jump else "")


def test_a_loop_of_jump_hosts_is_refused(config: Path) -> None:
    with pytest.raises(Usage, match="form a loop"):
        resolved(config, "Host lab\nProxyJump other\nHost other\nProxyJump lab\n")


@pytest.mark.parametrize(
    ("setting", "remark"),
    [
        ("ForwardAgent yes", "never forwarded"),
        ("VerifyHostKeyDNS yes", "known_hosts files decide"),
        ("KnownHostsCommand /bin/true", "not run"),
        ("StrictHostKeyChecking no", "still refused"),
        ("ControlPath ~/.ssh/%C", "a connection of its own"),
        ("RequiredRSASize 4096", "any RSA key"),
        ("LocalForward 1 b:2", "its own forwards"),
    ],
)
def test_a_setting_that_is_not_honoured_is_reported(
    setting: str, remark: str, config: Path
) -> None:
    assert any(remark in note for note in resolved(config, f"Host *\n{setting}\n").notes)
    # Debian's own /etc/ssh/ssh_config.
    assert resolved(config, "Host *\nHashKnownHosts yes\nGSSAPIAuthentication yes\n").notes == ()


def test_a_missing_or_broken_config_is_a_usage_error(config: Path) -> None:
    with pytest.raises(Usage, match="no ssh config"):
        resolve("lab", config)
    with pytest.raises(Usage, match="line 1"):
        resolved(config, "NoSuchThing yes\n")


@pytest.mark.usefixtures("without_ssh")
def test_without_ssh_the_simpler_parser_reads_and_names_its_gaps(config: Path) -> None:
    text = "Host lab\nHostName 10.0.0.9\nPort 2222\nUser anna\nProxyJump me@bastion:23\n"
    destination = resolved(config, text)
    assert destination.account == "anna@[10.0.0.9]:2222"
    assert destination.jump is not None
    assert destination.jump.account == "me@[bastion]:23"
    assert destination.host_key.strict == "ask"
    assert destination.login.methods == ("publickey", "keyboard-interactive", "password")
    assert HOME / ".ssh/id_ed25519" in destination.login.identity_files
    assert any("Include" in note for note in destination.notes)


@pytest.mark.parametrize(
    "text", ["Host lab\nPort\n", "Host lab\nPort many\n", "\0\0=\n", "Match exec true\nUser x\n"]
)
@pytest.mark.usefixtures("without_ssh")
def test_without_ssh_a_broken_config_is_a_usage_error(text: str, config: Path) -> None:
    with pytest.raises(Usage):
        resolved(config, text)


@pytest.mark.skipif(shutil.which("ssh") is None, reason="`ssh` is not installed")
@pytest.mark.parametrize("host", ["lab", "anna@lab", "other", "ssh://otto@lab:99"])
def test_without_ssh_simple_configs_come_out_as_with_it(
    host: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Host lab\nHostName 10.0.0.9\nPort 2222\nIdentityFile ~/k\nHost *\nUser anna\n"
    with_ssh = resolved(config, text, host)
    monkeypatch.setattr("jlremote.ssh.config.ssh_settings.shutil.which", lambda _name: None)
    alone = resolved(config, text, host)
    for name in ("host", "hostname", "port", "user", "jump", "proxy_command"):
        assert getattr(alone, name) == getattr(with_ssh, name), name
    assert alone.login.methods == with_ssh.login.methods
    if "lab" in host:
        assert alone.login.identity_files == with_ssh.login.identity_files


@pytest.mark.parametrize("path", ["~0", "~no-such-user/id_ed25519"])
def test_a_home_folder_that_does_not_exist_is_a_usage_error(path: str, config: Path) -> None:
    for setting in ("IdentityFile", "IdentityAgent", "UserKnownHostsFile", "RevokedHostKeys"):
        with pytest.raises(Usage):
            resolved(config, f"Host lab\n{setting} {path}\n")
    with pytest.raises(Usage, match="cannot find the home folder"):
        expand_path(path, TOKENS)


def test_the_home_folder_is_the_one_that_ssh_takes(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh asks the user database; `HOME` may be another one, as in some containers."""
    monkeypatch.setenv("HOME", str(tmp_path))
    told = tmp_path / "told"
    text = f'Match exec "echo %d >{told}"\nIdentityFile ~/one\nCertificateFile %d/two\n'
    login = resolved(config, text).login
    theirs = Path(told.read_text(encoding="utf-8").strip())
    assert theirs != tmp_path
    assert login.identity_files == (theirs / "one",)
    assert login.certificate_files == (theirs / "two",)


def test_paths_expand_the_home_folder_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_FOLDER", "/somewhere")
    assert expand_path("${SOME_FOLDER}/%r", TOKENS) == Path("/somewhere/me")
    assert expand_path("~/x", TOKENS) == HOME / "x"
    with pytest.raises(Usage, match="not set"):
        expand_path("${NO_SUCH_FOLDER}", TOKENS)
