"""Detection of containers that lost their GPUs while they ran.

When systemd reloads its units on the host (as any package update does), it resets the device
permissions of control groups, and those that the container toolkit added are gone: `nvidia-smi` in
the container says `Failed to initialize NVML: Unknown Error`, and CUDA finds no device
(NVIDIA/nvidia-container-toolkit issue 48). Only a restart gives them back.
"""

from __future__ import annotations

from jlremote.errors import JlrError
from jlremote.place.host.answers import records
from jlremote.text import one_line

# Free of cost without GPUs: the toolkit mounts `nvidia-smi` along with them.
CHECK = r"""
if command -v nvidia-smi >/dev/null 2>&1; then
  limit=; ! command -v timeout >/dev/null || limit='timeout 5'
  fault=$($limit nvidia-smi -L 2>&1) || printf 'gpu fault\037%s\036' "${fault:-no answer}"
fi
"""


def read(output: str, container: str, restart: str) -> JlrError | None:
    """Return what keeps a container from its GPUs, by the output of `CHECK`.

    The command `restart` restarts the container.
    """
    for name, *said in records(output):
        if name.strip() == "gpu fault":
            return _explained(one_line(" ".join(said)).rstrip("."), container, restart)
    return None


def _explained(said: str, container: str, restart: str) -> JlrError:
    what = f"the container `{container}` cannot use its GPUs (`{said}`)"
    mend = f"`{restart}` on the host fixes it; its kernels end"
    if "Failed to initialize NVML: Unknown Error" in said:
        what = (
            f"the container `{container}` has lost its GPUs (`{said}`): systemd on the host was "
            "reloaded and took away the container's permission for them"
        )
    elif "version mismatch" in said:
        what += ": the host's driver was updated since the container was started"
        mend += "; if it does not, reboot the host"
    else:
        what = f"the container `{container}` cannot use its GPUs: `{said}`"
    return JlrError(what, hint=mend)
