"""A second factor for an sshd: real PAM, Google's module, codes that are good once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.lab.place import root

PAM_SERVICES = Path("/etc/pam.d")
PREFIX = "jlr-lab-"


class OneTimeCodes:
    """The PAM service of one sshd; its only question is `Verification code:`.

    sshd calls its PAM service by the name that it was started under, so a link to it with a name of
    its own leaves this machine's `sshd` service alone. The codes are the module's scratch codes: it
    strikes out each that was used, and none depends on the clock.
    """

    def __init__(self, folder: Path, codes: Sequence[str]) -> None:
        forget_services()
        self.program = folder / f"{PREFIX}{folder.name}"
        self.program.symlink_to("/usr/sbin/sshd")
        self.secret = folder / "codes"
        self.secret.write_text("\n".join(("A" * 26, '" TOTP_AUTH', *codes, "")), encoding="utf-8")
        self.secret.chmod(0o400)
        self.service = PAM_SERVICES / self.program.name
        lines = (
            f"auth required pam_google_authenticator.so user=root secret={self.secret}",
            "account required pam_permit.so",
            "session required pam_permit.so",
        )
        self.service.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def configuration(self) -> tuple[str, ...]:
        """Return the lines of `sshd_config` that ask for a code."""
        return ("UsePAM yes", "KbdInteractiveAuthentication yes")

    def remaining(self) -> list[str]:
        """Return the unused codes."""
        return self.secret.read_text(encoding="utf-8").splitlines()[2:]

    def remove(self) -> None:
        """Remove the service from this machine."""
        self.service.unlink(missing_ok=True)


def forget_services() -> None:
    """Delete the services of killed runs: their folders are gone."""
    for service in PAM_SERVICES.glob(f"{PREFIX}*"):
        if not (root() / service.name.removeprefix(PREFIX)).exists():
            service.unlink(missing_ok=True)
