"""Real GPUs, if this machine has some: the script and its reader, without ssh or engine."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jlremote.gpus import snapshot_script
from jlremote.gpus.inventory import to_json
from jlremote.gpus.snapshot import read


@pytest.mark.hardware
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="`nvidia-smi` is not installed")
def test_real_gpus_are_read_as_nvidia_smi_lists_them() -> None:
    said = subprocess.run(
        ["/bin/sh"], input=snapshot_script.snapshot(), capture_output=True, text=True, timeout=60
    )
    found = read(said.stdout, "here")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    names = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    assert len(found.gpus) == len(names)
    for gpu, line in zip(found.gpus, names, strict=True):
        assert gpu.whole.uuid in line
        assert gpu.name in line
        assert not gpu.failed
        assert gpu.mig or gpu.busy is not None
    assert not found.notes
    assert to_json(found, "here")["gpus"][0]["memory_total"]
