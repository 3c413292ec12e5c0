"""The commands that give a host what it lacks, for its administrator; nothing runs them."""

from __future__ import annotations

from jlremote.host import installation
from jlremote.runtimes.engine.engine import Engine

DESCRIBE_DEVICES = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


def engine(wanted: Engine, distribution: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands that install a container engine on a distribution."""
    return installation.commands(wanted.everyday.kind.program, distribution)


def permission(wanted: Engine, user: str, host: str) -> tuple[str, ...]:
    """Return the commands that let a user use the engine, which is as good as being root."""
    group = wanted.kind.daemon or wanted.kind.program
    again = f"then `jlr disconnect {host}`: a login reads groups"
    return f"sudo usermod -aG {group} {user}", again


def driver(distribution: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands that install NVIDIA's driver."""
    return installation.commands("nvidia-driver", distribution)


def toolkit(wanted: Engine, distribution: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands that install NVIDIA's container toolkit, known to the engine."""
    installed = installation.commands("nvidia-container-toolkit", distribution)
    daemon = wanted.kind.daemon
    if daemon is None:
        return (*installed, DESCRIBE_DEVICES)
    return (
        *installed,
        f"sudo nvidia-ctk runtime configure --runtime={daemon}",
        f"sudo systemctl restart {daemon}   # ends the containers that run",
    )
