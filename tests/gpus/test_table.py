"""The table of GPUs and its live view."""

from __future__ import annotations

import dataclasses

import pytest
from rich.console import Console

from jlremote.cli.screen import gpu_table
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Claim
from tests.gpus.parts import inventory, mig, process, record, row

EVIL = "\x1b]0;gotcha\x07\x1b[31mpy\u202ethon"


def shown(found: Inventory, capsys: pytest.CaptureFixture[str]) -> str:
    gpu_table.show(found)
    return capsys.readouterr().out


def drawn(found: Inventory) -> str:
    console = Console(width=100, force_terminal=False, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(gpu_table.drawn("dgx", found))
    return capture.get()


def test_mig_devices_have_lines_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(Inventory(gpus=mig(), now=0, user="ada"), capsys)
    assert "0:0  MIG 3g.40gb  9.7 GiB / 39 GiB" in text
    assert "0:1  MIG 1g.10gb  12 MiB / 9.5 GiB" in text
    assert text.count("python, -u") == 1


def claimed(*claims: Claim) -> Inventory:
    found = inventory([row(0)])
    [gpu] = found.gpus
    whole = dataclasses.replace(gpu.whole, claims=claims)
    return dataclasses.replace(found, gpus=(dataclasses.replace(gpu, whole=whole),))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("container", "reserved by its container"),
        ("session", "reserved by its session"),
        ("start", "is being started"),
    ],
)
def test_a_reservation_has_a_line(
    kind: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = Claim(kind, "cont1", "ada", None)  # type: ignore[arg-type]
    text = shown(claimed(claim), capsys)
    assert words in text
    assert "reserved" in text.splitlines()[1]


def test_no_name_on_the_host_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    owners = record("owners", f"/proc/100 {EVIL}", "", "")
    text = process(0).replace("python3", EVIL)
    found = inventory([row(0, used=5009).replace("NVIDIA A100", EVIL)], owners, processes=text)
    for output in (shown(found, capsys), drawn(found)):
        assert "\x1b" not in output
        assert "\u202e" not in output
        assert "python" in output
