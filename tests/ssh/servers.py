"""An ssh-agent, and servers that the lab's class does not start: in namespaces, with own PAM."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import psutil

from tests.lab.place import LabError
from tests.lab.programs import SYSTEM_PATH, run, wait_until
from tests.lab.sshd import SSHServer

# Without the two seconds that a wrong password costs elsewhere.
ONLY_PASSWORD = (
    "auth required pam_unix.so nodelay",
    "account required pam_permit.so",
    "session required pam_permit.so",
)
WITH_PASSWORDS = ("UsePAM yes", "PasswordAuthentication yes", "KbdInteractiveAuthentication no")
INTERACTIVE = ("UsePAM yes", "KbdInteractiveAuthentication yes")


class AgentProcess:
    """A real ssh-agent on a socket of its own."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> AgentProcess:
        self._process = subprocess.Popen(
            ("ssh-agent", "-D", "-a", str(self.socket)), stdout=subprocess.DEVNULL
        )
        wait_until(self.socket.exists, "the agent's socket")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def add(self, key: Path) -> None:
        """Hand a key without a passphrase to the agent, its certificate too if there is one."""
        run("ssh-add", "-q", str(key), env={"PATH": SYSTEM_PATH, "SSH_AUTH_SOCK": str(self.socket)})

    def suspend(self) -> None:
        """Let the agent hang."""
        assert self._process is not None
        psutil.Process(self._process.pid).suspend()

    def resume(self) -> None:
        """Let the agent answer again."""
        assert self._process is not None
        psutil.Process(self._process.pid).resume()


class SpecialServer(SSHServer):
    """An sshd under another program name, in another network namespace, or both.

    Attributes:
        namespace: the network namespace it runs in, `""` for our own.
        program: the path of sshd; its last part is the name of the PAM service.
    """

    namespace = ""
    program = "/usr/sbin/sshd"

    def start(self) -> None:
        """Start sshd and wait until it says that it listens."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text("\n".join(self.configuration()) + "\n", encoding="utf-8")
        self.log.unlink(missing_ok=True)  # the wait below reads what this sshd says
        enter = ("ip", "netns", "exec", self.namespace) if self.namespace else ()
        # `exec` in between: sshd must see its own path as argv[0] to run itself again.
        self._process = psutil.Popen(
            ("setpriv", "--pdeathsig", "TERM", *enter, *self._argv(config)),
            stdin=subprocess.DEVNULL,
            env={"PATH": SYSTEM_PATH},
            start_new_session=True,
        )
        wait_until(self._listens_or_ended, f"the start of sshd on port {self.port}")
        if "Server listening" not in self.log_text():
            raise LabError(f"sshd did not start:\n{self.log_text()}")

    def _argv(self, config: Path) -> Sequence[str]:
        return (self.program, "-D", "-f", str(config), "-E", str(self.log))

    def _listens_or_ended(self) -> bool:
        assert self._process is not None
        return "Server listening" in self.log_text() or self._process.poll() is not None


def code_service(folder: Path, codes: Sequence[str]) -> tuple[str, ...]:
    """Return the PAM service that asks for a password, and then for a code that is good once."""
    secret = folder / "codes"
    secret.write_text("\n".join(("A" * 26, '" TOTP_AUTH', *codes, "")))
    secret.chmod(0o400)
    code = f"auth required pam_google_authenticator.so user=root secret={secret}"
    return (ONLY_PASSWORD[0], code, *ONLY_PASSWORD[1:])


class PamServer(SpecialServer):
    """An sshd whose PAM service is its own file in /etc/pam.d, so that no other server changes."""

    def __init__(self, authorized_keys: Path, service: Sequence[str], **settings: object) -> None:
        super().__init__(authorized_keys, **settings)  # type: ignore[arg-type]
        name = f"sshd-{self.folder.name}"
        link = self.folder / name
        link.symlink_to("/usr/sbin/sshd")
        self.program = str(link)
        self._service = Path("/etc/pam.d") / name
        self._service.write_text("\n".join(service) + "\n")

    def remove(self) -> None:
        """Stop, and delete the service, the keys and the log."""
        super().remove()
        self._service.unlink(missing_ok=True)


class Network:
    """Two hosts behind one another: the laptop reaches the bastion, only the bastion the inner one.

    laptop (this machine) ── 10.231.N.0/30 ── bastion ── 10.232.N.0/30 ── inner
    """

    def __init__(self, number: int) -> None:
        self.bastion, self.inner = f"jlr-bastion-{number}", f"jlr-inner-{number}"
        self.bastion_address = f"10.231.{number}.2"
        self.inner_address = f"10.232.{number}.2"
        self._number = number

    def __enter__(self) -> Network:
        if shutil.which("ip") is None:
            raise LabError("`ip` is not installed")
        self._remove()
        number = self._number
        near, far = f"jlrn{number}", f"jlrf{number}"
        for namespace in (self.bastion, self.inner):
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
        run("ip", "link", "add", near, "type", "veth", "peer", "name", near, "netns", self.bastion)
        run("ip", "-n", self.bastion, "link", "add", far, "type", "veth", "peer", "name", far,
            "netns", self.inner)  # fmt: skip
        self._address("", near, f"10.231.{number}.1/30")
        self._address(self.bastion, near, f"{self.bastion_address}/30")
        self._address(self.bastion, far, f"10.232.{number}.1/30")
        self._address(self.inner, far, f"{self.inner_address}/30")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _address(self, namespace: str, device: str, address: str) -> None:
        where = ("-n", namespace) if namespace else ()
        run("ip", *where, "address", "add", address, "dev", device)
        run("ip", *where, "link", "set", device, "up")

    def _remove(self) -> None:
        for namespace in (self.bastion, self.inner):
            if (Path("/run/netns") / namespace).exists():
                run("ip", "netns", "delete", namespace)
