"""Commands behind `sudo`, which a user cannot always send a signal to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest

from jlremote.place.host.shell_text import until_hang_up
from jlremote.place.host.sudo import SUDO, SUDO_IF_KNOWN, endable, given, programs
from tests.lab.programs import SYSTEM_PATH, lives, wait_until
from tests.place.host.parts import OLD_SUDO


@pytest.mark.lab  # it takes seconds
def test_a_command_ends_though_sudo_passes_on_no_signals(tmp_path: Path) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(OLD_SUDO)
    sudo.chmod(0o755)
    text = until_hang_up(endable((*SUDO, "sh", "-c", "echo $$; sleep 600")))
    with subprocess.Popen(
        ("sh", "-c", text),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": f"{tmp_path}:{SYSTEM_PATH}"},
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        process = psutil.Process(int(shell.stdout.readline()))
        shell.stdin.close()
        wait_until(lambda: not lives(process), "the end of what `sudo` runs")
        for sleeping in psutil.process_iter(["ppid"]):
            assert sleeping.info["ppid"] != process.pid


def test_a_script_needs_a_password_only_for_programs_behind_sudo() -> None:
    assert programs("sudo -A -k docker ps; timeout 5 sudo -A -k A=b podman ps") == {
        "docker",
        "podman",
    }
    assert programs("sudo -n -k docker ps; sudo -k -A docker; docker run sudo") == set()
    assert programs("sudo -n -k podman; sudo -k -A docker ps", SUDO_IF_KNOWN) == {"docker"}
    assert given("true\n", "it's").endswith("true\n")
