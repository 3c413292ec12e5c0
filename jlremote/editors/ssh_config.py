"""`jlr config ssh`: the block that leads ssh to the link's server, and its line in the user's file.

The block is in a file of ours, behind a `Host` line for each known session (`laptop/known_names`).
`~/.ssh/config` gets one `Include` line at its beginning: ssh takes the first value that it finds,
so no `Host *` of the user comes before it. The rest of the user's file stays as it is, byte for
byte.

A `Host *` is written for other servers: its algorithms, checks and time limits may not suit ours,
and a terminal or command that it forces breaks what runs over ssh. So the block sets each such
option, to OpenSSH's default where ours needs nothing else. What does no harm stays the user's:
their agent, forwards, variables and keys, which ssh adds to those that it has found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jlremote.editors.editor_keys import HOST_ALIAS, editor_keys
from jlremote.errors import JlrError, NeedsAuthentication
from jlremote.laptop import known_names, paths
from jlremote.laptop.sessions import none_known
from jlremote.place.host.shell_text import command_line
from jlremote.questions import Asker, Question
from jlremote.text import reason_of

# ssh's own check of a name is younger than the versions that many machines have.
_NAME = '"%n"' if sys.platform == "win32" else "'%n'"
_SETTINGS = (
    # ssh takes ChaCha20 first, which costs the link's server twice the processor's time.
    "Ciphers aes128-gcm@openssh.com,chacha20-poly1305@openssh.com",
    "KexAlgorithms curve25519-sha256,ecdh-sha2-nistp256",
    "WarnWeakCrypto no",  # nothing leaves this machine
    "HostKeyAlgorithms ssh-ed25519",
    "ProxyUseFdpass no",
    "StrictHostKeyChecking yes",
    "CheckHostIP no",
    "KnownHostsCommand none",
    "UpdateHostKeys no",
    "VerifyHostKeyDNS no",
    "IdentitiesOnly yes",
    "PKCS11Provider none",  # it may ask for a PIN
    "AddKeysToAgent no",
    "PubkeyAuthentication yes",
    "PubkeyAcceptedKeyTypes ssh-ed25519",  # the name that old versions know, too
    "PreferredAuthentications publickey",
    "CanonicalizeHostname no",
    "ConnectTimeout 0",  # a password or code may have to be typed first
    "ServerAliveInterval 0",
    "RequestTTY auto",
    "RemoteCommand none",
    "SessionType default",
    "StdinNull no",
    "ForkAfterAuthentication no",
    "PermitLocalCommand no",  # its output would be among that of `rsync` and `git`
    "ClearAllForwardings no",
    "ExitOnForwardFailure no",
    "ForwardX11 no",
    "Tunnel no",
    "ControlMaster no",
    "ControlPath none",
    "ControlPersist no",  # it sends what `jlr proxy` has to say to /dev/null
)
# Where the system's own programs are; what `os.defpath` says of Windows begins with this folder.
_SYSTEM_PATH = r"C:\Windows\System32\OpenSSH" if sys.platform == "win32" else os.defpath
_REFUSED = re.compile(r"line (\d+): ")


@dataclass(frozen=True)
class ConfigChange:
    """The change that `--install` or `--remove` makes to the user's file."""

    file: Path
    line: str  # the line that comes or goes; empty if nothing changes
    done: bool


def block() -> str:
    """Return the block for ssh; missing files that it names are made."""
    keys = editor_keys()
    lines = (
        f"ProxyCommand {_command(_program())} proxy {_NAME}",
        f"HostKeyAlias {HOST_ALIAS}",
        f"UserKnownHostsFile {_quoted(keys.known_hosts)}",
        f"IdentityFile {_quoted(keys.client)}",
        *client_settings(),
    )
    return known_names.PATTERN + "".join(f"    {line}\n" for line in lines)


def client_settings() -> list[str]:
    """Return the settings that this machine's ssh knows: one unknown to ssh spoils the file."""
    lines = list(_SETTINGS)
    # An environment may bring an ssh of its own, and an editor take the system's.
    for program in filter(None, {shutil.which("ssh"), shutil.which("ssh", path=_SYSTEM_PATH)}):
        refused = {""}
        while refused:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "config")
                file.write_text("\n".join(lines), encoding="utf-8")
                argv = (program, "-F", str(file), "-G", "--", "jlr")
                asked = subprocess.run(argv, capture_output=True, text=True, check=False)
            refused = {*_REFUSED.findall(asked.stderr)}
            lines = [line for number, line in enumerate(lines, 1) if str(number) not in refused]
    return lines


def plain_blocks() -> str:
    """Return a block for each known name, for programs that read no `Include`, `Match` or `%n`.

    Raise `NotFound` if no session is known on this laptop.
    """
    names = known_names.ssh_names()
    if not names:
        raise none_known()
    keys = editor_keys()
    known_hosts = keys.known_hosts.with_name("known_hosts_plain")
    _, public = keys.known_hosts.read_text(encoding="utf-8").split(" ", 1)
    paths.write_whole(known_hosts, f"{','.join(names)} {public}")
    return "".join(
        f"Host {name}\n"
        f"    HostName {name}\n"
        "    User jlr\n"
        f"    IdentityFile {_quoted(keys.client)}\n"
        "    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {_quoted(known_hosts)}\n"
        f"    ProxyCommand {_command((*_program(), 'proxy', name))}\n"
        for name in names
    )


def install(asker: Asker, show: Callable[[str], None], *, agreed: bool = False) -> ConfigChange:
    """Write the block to a file of ours and include it in `~/.ssh/config`, once the user agrees.

    Raise `JlrError` if a file cannot be read or written, or there is no terminal to ask on.
    """
    paths.write_whole(known_names.config_file(), known_names.with_names(block()))
    return _changed("+", asker, show, agreed)


def remove(asker: Asker, show: Callable[[str], None], *, agreed: bool = False) -> ConfigChange:
    """Take our line out of `~/.ssh/config`, and delete our file; for errors see `install`."""
    change = _changed("-", asker, show, agreed)
    if change.done and change.line:
        known_names.config_file().unlink(missing_ok=True)
    return change


def is_installed() -> bool:
    """Return whether `~/.ssh/config` has our line."""
    return any(map(_is_ours, _read(_users_file()).splitlines()))


def _changed(sign: str, asker: Asker, show: Callable[[str], None], agreed: bool) -> ConfigChange:
    """Add our line to the user's file (`+`) or take it away (`-`), once the user agrees."""
    file, line = _users_file(), _line()
    before = _read(file)
    theirs = b"".join(each for each in before.splitlines(keepends=True) if not _is_ours(each))
    after = f"{line}\n".encode() + theirs if sign == "+" else theirs
    if after == before:
        return ConfigChange(file, "", done=True)
    if not agreed:
        show(f"{file}:\n{sign} {line}")
        try:
            answer = asker.ask(Question("confirm", f"Change {file}?"))
        except NeedsAuthentication:
            hint = "add `--yes` to do it without a question"
            raise JlrError(f"`{file}` was not changed: jlr cannot ask here", hint=hint) from None
        if answer != "yes":
            return ConfigChange(file, line, done=False)
    if _read(file) != before:
        raise JlrError(f"`{file}` has changed meanwhile", hint="run the command again")
    try:
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
        paths.write_whole(file, after)
        file.chmod(mode)
    except OSError as failure:
        raise JlrError(f"cannot write `{file}`: {reason_of(failure)}") from failure
    return ConfigChange(file, line, done=True)


def _users_file() -> Path:
    """Return `~/.ssh/config`; where it is a link, the file that it leads to."""
    return (Path.home() / ".ssh" / "config").resolve()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as failure:
        raise JlrError(f"cannot read `{file}`: {reason_of(failure)}") from failure


def _line() -> str:
    return f"Include {_quoted(known_names.config_file())}"


def _is_ours(line: bytes) -> bool:
    return line.strip() == _line().encode()


def _program() -> tuple[str, ...]:
    """Return the command that runs this jlr; ssh may have another search path."""
    program = shutil.which("jlr", path=Path(sys.executable).parent) or shutil.which("jlr")
    return (program,) if program else (sys.executable, "-m", "jlremote")


def _command(words: tuple[str, ...]) -> str:
    return subprocess.list2cmdline(words) if sys.platform == "win32" else command_line(words)


def _quoted(path: Path) -> str:
    text = path.as_posix()  # a backslash may be an escape
    return f'"{text}"' if " " in text else text
