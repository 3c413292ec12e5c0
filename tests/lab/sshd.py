"""OpenSSH servers of the lab's own, on ports of 127.0.0.1."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from tests.lab.accounts import program_name
from tests.lab.place import LabError, PrivateFolder, root
from tests.lab.ports import free_port
from tests.lab.programs import SYSTEM_PATH, end, run, wait_until

__all__ = ["end"]

SSHD = "/usr/sbin/sshd"
PAM_SERVICES = Path("/etc/pam.d")
PAM_PREFIX = "sshd-jlr-lab-"  # the beginning is that of `is_sshd`


# A PAM service that asks for a password, without the two seconds that a wrong one costs elsewhere,
# and the options that go with it.
ONLY_PASSWORD = (
    "auth required pam_unix.so nodelay",
    "account required pam_permit.so",
    "session required pam_permit.so",
)
WITH_PASSWORDS = ("UsePAM yes", "PasswordAuthentication yes", "KbdInteractiveAuthentication no")
INTERACTIVE = ("UsePAM yes", "KbdInteractiveAuthentication yes")


def with_codes(folder: Path, codes: Sequence[str]) -> tuple[str, ...]:
    """Return the PAM service that asks for a password, and then for one of `codes`.

    They are the scratch codes of Google's module: it strikes out each that was used, and none
    depends on the clock.
    """
    secret = folder / "codes"
    secret.write_text("\n".join(("A" * 26, '" TOTP_AUTH', *codes, "")), encoding="utf-8")
    secret.chmod(0o400)
    code = f"auth required pam_google_authenticator.so user=root secret={secret}"
    return (ONLY_PASSWORD[0], code, *ONLY_PASSWORD[1:])


def forget_services() -> None:
    """Delete the services of killed runs: their folders are gone."""
    for service in PAM_SERVICES.glob(f"{PAM_PREFIX}run-*"):
        if not (root() / service.name.removeprefix(PAM_PREFIX)).exists():
            service.unlink(missing_ok=True)


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair without a comment and return the private one's path."""
    bits = ("-b", "2048") if kind == "rsa" else ()  # more take seconds to find
    rounds = ("-a", "1")  # with sixteen each use of the passphrase takes a fifth of a second
    words = (*bits, *rounds, "-N", passphrase, "-C", "", "-f", str(path))
    run("ssh-keygen", "-q", "-t", kind, *words)
    return path


class SSHServer:
    """An sshd with its own configuration, host keys, port and log.

    Args:
        options: further lines of `sshd_config`; sshd takes the first of two, so they win.
        pam: the lines of a PAM service of its own. sshd calls the service by the name that it was
            started under, so a link to it leaves this machine's `sshd` service alone.
        namespace: the network namespace that it runs in, `""` for our own.
    """

    def __init__(
        self,
        authorized_keys: Path,
        *,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        port: int | None = None,
        host_key_kinds: Sequence[str] = ("ed25519", "ecdsa"),
        pam: Sequence[str] = (),
        namespace: str = "",
    ) -> None:
        self.port = port or free_port()
        self.authorized_keys = authorized_keys
        self.environment = dict(environment or {})
        self.options = tuple(options)
        self._private = PrivateFolder("sshd")
        self.folder = self._private.path
        self.log = self.folder / "sshd.log"
        self.host_keys = [make_key(self.folder / f"host_{kind}", kind) for kind in host_key_kinds]
        self._namespace = namespace
        self._program = Path(SSHD)
        if pam:
            forget_services()
            self._program = self.folder / f"{PAM_PREFIX}{self.folder.name}"
            self._program.symlink_to(SSHD)
            (PAM_SERVICES / self._program.name).write_text("\n".join(pam) + "\n", encoding="utf-8")
        self._process: psutil.Popen | None = None

    def start(self) -> None:
        """Start sshd and wait until it greets."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text("\n".join(self.configuration()) + "\n", encoding="utf-8")
        # It dies with us even when we are killed: `-D` keeps it a child, setpriv does the rest.
        program = (str(self._program), "-D", "-f", str(config), "-E", str(self.log))
        enter = ("ip", "netns", "exec", self._namespace) if self._namespace else ()
        if self._namespace:
            self.log.unlink(missing_ok=True)  # the wait below reads what this sshd says
        process = self._process = psutil.Popen(
            ("setpriv", "--pdeathsig", "TERM", *enter, *program),
            stdin=subprocess.DEVNULL,
            env={"PATH": SYSTEM_PATH},
            start_new_session=True,
        )
        wait_until(
            lambda: process.poll() is not None or self._greets(),
            f"the start of sshd on port {self.port}",
        )
        if not self._greets():
            raise LabError(f"sshd did not start:\n{self.log_text()}")

    def __enter__(self) -> Self:
        """Start it; one that does not come up leaves nothing."""
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def configuration(self) -> list[str]:
        settings = [f'"{name}={value}"' for name, value in self.environment.items()]
        return [
            *self.options,
            *(f"HostKey {key}" for key in self.host_keys),
            f"ListenAddress 127.0.0.1:{self.port}",
            f"AuthorizedKeysFile {self.authorized_keys}",
            f"PidFile {self.folder / 'sshd.pid'}",
            *([f"SetEnv {' '.join(settings)}"] if settings else []),
            "UsePAM no",
            "StrictModes no",  # the lab's folder is below /var/tmp, which everybody may write to
            "PermitRootLogin no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PrintMotd no",
            "UseDNS no",
            "MaxStartups 100",
            "LogLevel VERBOSE",
            # Each login of OpenSSH's own client would compute for a seventh of a second.
            "KexAlgorithms -sntrup*",
            "Subsystem sftp internal-sftp",
        ]

    def _greets(self) -> bool:
        if self._namespace:
            return "Server listening" in self.log_text()
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as probe:
                return probe.recv(4) == b"SSH-"
        except OSError:
            return False

    def sessions(self) -> list[psutil.Process]:
        """Return the sshd processes below the listener, two for every connection of a user."""
        if self._process is None or not self._process.is_running():
            return []
        children = self._process.children(recursive=True)  # and what the user runs in it
        return [child for child in children if (program_name(child) or "").startswith("sshd")]

    def drop_connections(self) -> None:
        """Kill every connection's sshd and keep listening; what they started is left to itself."""
        end(self.sessions())

    def freeze_connections(self) -> None:
        """Stop every connection's sshd from answering, as a line that swallows all packets."""
        for process in self.sessions():
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def thaw_connections(self) -> None:
        """Let every connection's sshd go on; one that was told to end meanwhile ends now."""
        if self._process is not None:
            self._process.resume()
        for process in self.sessions():
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def freeze(self) -> None:
        """Stop all of it from answering, the listener too; `thaw_connections` ends that."""
        if self._process is not None:
            self._process.suspend()
        self.freeze_connections()

    def stop(self) -> None:
        """Stop listening and drop every connection. Twice is fine."""
        if self._process is not None:
            connections = self.sessions()
            end([self._process, *connections])
            self._process.wait()
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def log_text(self) -> str:
        """Return what sshd logged so far, at its level VERBOSE."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def known_hosts(self, name: str) -> str:
        """Return the lines of `known_hosts` that make this server known as `name`."""
        public = [key.with_suffix(".pub").read_text(encoding="utf-8") for key in self.host_keys]
        return "".join(f"{name} {line.strip()}\n" for line in public)

    def remove(self) -> None:
        """Stop, and delete the keys and the log."""
        self.stop()
        if self._program.name != "sshd":
            (PAM_SERVICES / self._program.name).unlink(missing_ok=True)
        self._private.remove()
