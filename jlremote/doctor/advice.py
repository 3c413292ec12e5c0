"""How to install what a host lacks, as commands for its administrator to read; nothing runs them.

Sources: https://docs.docker.com/engine/install/,
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html,
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jlremote.runtimes.engine.engine import Engine

_REPOSITORY = "https://nvidia.github.io/libnvidia-container"
_KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"

DESCRIBE_DEVICES = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
_DOCKER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "debian": ("sudo apt-get update && sudo apt-get install docker.io",),
        "fedora": (
            (
                "sudo dnf config-manager --add-repo "
                "https://download.docker.com/linux/centos/docker-ce.repo"
            ),
            "sudo dnf install docker-ce docker-ce-cli containerd.io",
            "sudo systemctl enable --now docker",
        ),
        "suse": ("sudo zypper install docker", "sudo systemctl enable --now docker"),
        "arch": ("sudo pacman -S docker", "sudo systemctl enable --now docker"),
    }
)
_PODMAN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "debian": ("sudo apt-get update && sudo apt-get install podman",),
        "fedora": ("sudo dnf install podman",),
        "suse": ("sudo zypper install podman",),
        "arch": ("sudo pacman -S podman",),
    }
)
_DRIVER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ubuntu": (
            "sudo apt-get install ubuntu-drivers-common && sudo ubuntu-drivers install",
            "sudo reboot",
        ),
        "debian": (
            "sudo apt-get install linux-headers-amd64 nvidia-driver   # with `non-free` in sources",
            "sudo reboot",
        ),
    }
)
_TOOLKIT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "debian": (
            f"curl -fsSL {_REPOSITORY}/gpgkey | sudo gpg --dearmor -o {_KEYRING}",
            (
                f"curl -fsSL {_REPOSITORY}/stable/deb/nvidia-container-toolkit.list | "
                f"sed 's#deb https://#deb [signed-by={_KEYRING}] https://#' | "
                "sudo tee /etc/apt/sources.list.d/nvidia-container-toolkit.list"
            ),
            "sudo apt-get update && sudo apt-get install nvidia-container-toolkit",
        ),
        "fedora": (
            (
                f"curl -fsSL {_REPOSITORY}/stable/rpm/nvidia-container-toolkit.repo | "
                "sudo tee /etc/yum.repos.d/nvidia-container-toolkit.repo"
            ),
            "sudo dnf install nvidia-container-toolkit",
        ),
        "suse": (
            f"sudo zypper ar {_REPOSITORY}/stable/rpm/nvidia-container-toolkit.repo",
            "sudo zypper --gpg-auto-import-keys install nvidia-container-toolkit",
        ),
        "arch": ("sudo pacman -S nvidia-container-toolkit",),
    }
)
# As `os-release` calls them, and what they call themselves like.
_FAMILIES: Mapping[str, str] = MappingProxyType(
    {"rhel": "fedora", "centos": "fedora", "rocky": "fedora", "opensuse": "suse", "sles": "suse"}
)


def engine(wanted: Engine, distribution: tuple[str, ...]) -> tuple[str, ...]:
    """Return how to install a container engine.

    Args:
        wanted: which.
        distribution: the host's, and what it descends from, as `ID` and `ID_LIKE` tell.
    """
    if wanted.kind.daemon is None:
        return _known(_PODMAN, distribution) or ("https://podman.io/docs/installation",)
    return _known(_DOCKER, distribution) or ("https://docs.docker.com/engine/install/",)


def permission(wanted: Engine, user: str, host: str) -> tuple[str, ...]:
    """Return how to let a user use the engine; whoever may use docker is as good as root."""
    group = wanted.kind.daemon or wanted.kind.program
    again = f"then `jlr disconnect {host}`: a login reads groups"
    return f"sudo usermod -aG {group} {user}", again


def driver(distribution: tuple[str, ...]) -> tuple[str, ...]:
    """Return how to install NVIDIA's driver."""
    return _known(_DRIVER, distribution) or (
        "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    )


def toolkit(wanted: Engine, distribution: tuple[str, ...]) -> tuple[str, ...]:
    """Return how to install NVIDIA's container toolkit, and make it known to the engine."""
    installed = _known(_TOOLKIT, distribution) or (
        (
            "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"
            "install-guide.html"
        ),
    )
    daemon = wanted.kind.daemon
    if daemon is None:
        return (*installed, DESCRIBE_DEVICES)
    return (
        *installed,
        f"sudo nvidia-ctk runtime configure --runtime={daemon}",
        f"sudo systemctl restart {daemon}   # ends the containers that run",
    )


def _known(
    table: Mapping[str, tuple[str, ...]], distribution: tuple[str, ...]
) -> tuple[str, ...] | None:
    names = (_FAMILIES.get(name.partition("-")[0], name) for name in distribution)
    return next((table[name] for name in names if name in table), None)
