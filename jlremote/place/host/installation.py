"""Commands that install a program, from the manuals in `_MANUALS`; shown, never run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec

_REPOSITORY = "https://nvidia.github.io/libnvidia-container"
_KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
_DOCKER = "https://download.docker.com/linux"


def _apt(packages: str) -> str:
    return f"sudo apt update && sudo apt install {packages}"


def beside_jlr(module: str) -> str:
    """Return the command that installs a Python package where jlr is installed."""
    # The environments of uv have no pip.
    pip = f"{sys.executable} -m pip install"
    install = pip if find_spec("pip") else f"uv pip install --python {sys.executable}"
    return f"{install} {module}"


_COMMANDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "docker": {
        "debian": (_apt("docker.io"),),
        "fedora": (
            f"sudo dnf config-manager --add-repo {_DOCKER}/centos/docker-ce.repo",
            "sudo dnf install docker-ce docker-ce-cli containerd.io",
            "sudo systemctl enable --now docker",
        ),
    },
    "podman": {
        "debian": (_apt("podman uidmap slirp4netns"),),
        "fedora": ("sudo dnf install podman",),
    },
    "nvidia-docker": {"debian": (_apt("nvidia-docker2"),)},
    "nvidia-driver": {
        "ubuntu": (
            f"{_apt('ubuntu-drivers-common')} && sudo ubuntu-drivers install",
            "sudo reboot",
        ),
        "debian": (
            f"{_apt('linux-headers-amd64 nvidia-driver')}   # with `non-free` in sources",
            "sudo reboot",
        ),
    },
    "nvidia-container-toolkit": {
        "debian": (
            f"curl -fsSL {_REPOSITORY}/gpgkey | sudo gpg --dearmor -o {_KEYRING}",
            (
                f"curl -fsSL {_REPOSITORY}/stable/deb/nvidia-container-toolkit.list | "
                f"sed 's#deb https://#deb [signed-by={_KEYRING}] https://#' | "
                "sudo tee /etc/apt/sources.list.d/nvidia-container-toolkit.list"
            ),
            _apt("nvidia-container-toolkit"),
        ),
        "fedora": (
            (
                f"curl -fsSL {_REPOSITORY}/stable/rpm/nvidia-container-toolkit.repo | "
                "sudo tee /etc/yum.repos.d/nvidia-container-toolkit.repo"
            ),
            "sudo dnf install nvidia-container-toolkit",
        ),
    },
    "sshfs": {
        "debian": (_apt("sshfs"),),
        "rhel": ("sudo dnf install epel-release && sudo dnf install fuse-sshfs",),
        "fedora": ("sudo dnf install fuse-sshfs",),
        "suse": ("sudo zypper install sshfs",),
        "arch": ("sudo pacman -S sshfs",),
        "alpine": ("sudo apk add sshfs",),
    },
}
_MANUALS: Mapping[str, str] = {
    "docker": "https://docs.docker.com/engine/install/",
    "podman": "https://podman.io/docs/installation",
    "nvidia-driver": "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    "nvidia-container-toolkit": "https://docs.nvidia.com/datacenter/cloud-native/"
    "container-toolkit/latest/install-guide.html",
    "sshfs": "https://github.com/libfuse/sshfs#installation",
}
# The nearest distribution of the tables for one that is not in them.
_FAMILIES: Mapping[str, str] = {
    "ubuntu": "debian",
    **dict.fromkeys(("rhel", "centos", "rocky"), "fedora"),
    **dict.fromkeys(("opensuse", "sles"), "suse"),
}


def commands(program: str, distribution: tuple[str, ...] = ("debian",)) -> tuple[str, ...]:
    """Return the commands that install a program, or its manual's address if none are known."""
    table = _COMMANDS[program]
    names = [name.partition("-")[0] for name in distribution]
    near = (*names, *(_FAMILIES.get(name, "") for name in names))
    found = next((name for name in near if name in table), None)
    return (_MANUALS[program],) if found is None else table[found]


def os_release(text: str) -> dict[str, str]:
    """Return the variables of an `os-release` file (os-release(5))."""
    lines = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip().strip("\"'") for name, equals, value in lines if equals}


def distribution_of(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the distribution of `os-release` and those that it descends from, nearest first."""
    return (facts.get("ID", ""), *facts.get("ID_LIKE", "").split())
