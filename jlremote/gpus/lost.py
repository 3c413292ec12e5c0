"""Containers that lost their GPUs while they ran.

When systemd reloads its units on the host (an update of any package does that), it sets the device
permissions of control groups anew, and those that the container toolkit had added beside it are
gone: inside, `nvidia-smi` says `Failed to initialize NVML: Unknown Error`, and CUDA finds nothing
(NVIDIA/nvidia-container-toolkit issue 48). Nothing but a restart gives them back.
"""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.host.records import records
from jlremote.text import one_line

# Costs nothing where there are no GPUs: the toolkit brings `nvidia-smi` in along with them.
CHECK = r"""
if command -v nvidia-smi >/dev/null 2>&1; then
  limit=; ! command -v timeout >/dev/null || limit='timeout 5'
  fault=$($limit nvidia-smi -L 2>&1) || printf 'gpu fault\037%s\036' "${fault:-no answer}"
fi
"""


@dataclass(frozen=True)
class Fault:
    """What keeps a container from its GPUs.

    Attributes:
        said: what `nvidia-smi` in it says.
        why: what happened, in a sentence.
        mend: what to do about it.
    """

    said: str
    why: str
    mend: str


def read(output: str, container: str, restart: str) -> Fault | None:
    """Return the fault that `CHECK` found in a container, `None` for none.

    Args:
        output: what it printed.
        container: the container's name.
        restart: the command on the host that restarts it.
    """
    for name, *said in records(output):
        if name.strip() == "gpu fault":
            return _explained(one_line(" ".join(said)).rstrip("."), container, restart)
    return None


def _explained(said: str, container: str, restart: str) -> Fault:
    mend = f"`{restart}` on the host mends it; its kernels end"
    if "Failed to initialize NVML: Unknown Error" in said:
        why = (
            f"the container `{container}` has lost its GPUs (`{said}`): systemd on the host was "
            "reloaded and took away the container's permission for them"
        )
        return Fault(said, why, mend)
    if "version mismatch" in said:
        why = (
            f"the container `{container}` cannot use its GPUs (`{said}`): the host's driver was "
            "updated since the container was started"
        )
        return Fault(said, why, f"{mend}; if it does not, the host wants a reboot")
    return Fault(said, f"the container `{container}` cannot use its GPUs: `{said}`", mend)
