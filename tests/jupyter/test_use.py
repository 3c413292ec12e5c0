"""What keeps a server with an idle stop, beside what Jupyter itself counts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

from jlremote.jupyter.in_server import newer
from jlremote.jupyter.in_server.newer import Use


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for nvidia-smi, and return the file with the loads that it prints."""
    program, loads = tmp_path / "nvidia-smi", tmp_path / "loads"
    program.write_text(f'#!/bin/sh\n[ "$3" = --id=0,1 ] && cat {loads}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    return loads


def test_load_of_the_sessions_gpus_and_marked_programs_keep_it(
    smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"JLR_TEST{os.getpid()}="  # programs of other tests have the real one
    monkeypatch.setattr(newer, "MARK", mark.encode())
    kept, told = Use(60, tmp_path), tmp_path / "awake"
    smi.write_text("0\n[N/A]\n")
    kept.look()
    assert (told.read_text(), kept.recent) == ("", False)
    smi.write_text("2\n97\n")
    kept.look()
    assert (told.read_text(), kept.recent) == ("97 % load of its GPUs\n", True)
    smi.unlink()
    program = subprocess.Popen(("sleep", "60"), env={**os.environ, mark[:-1]: "x"})
    try:
        kept.look()
        assert told.read_text() == "ssh, a shell or a job\n"
        kept.last = float("-inf")
        assert kept.recent, "it began after the last look"
        kept.look()
    finally:
        program.kill()
        program.wait()
    kept.look()
    assert (told.read_text(), kept.recent) == ("", True), "used a moment ago"


def test_a_used_server_and_its_kernels_stay_and_others_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(newer, "programs", list)

    async def cull(_: object, kernel: str) -> None:
        ended.append(kernel)

    monkeypatch.setattr(MappingKernelManager, "cull_kernel_if_idle", cull)
    monkeypatch.setattr(ServerApp, "shutdown_no_activity", lambda _: ended.append("server"))
    monkeypatch.setattr(Use, "keep_looking", lambda _: None)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    kept = newer.keep(3600)
    nothing: Any = SimpleNamespace()
    kernels: Any = MappingKernelManager
    server: Any = ServerApp
    for kept.last in (float("inf"), float("-inf")):
        asyncio.run(kernels.cull_kernel_if_idle(nothing, "k"))
        server.shutdown_no_activity(nothing)
    assert ended == ["k", "server"]
