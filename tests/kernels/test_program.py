"""The program of a kernel spec: the words that it is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.cli import kernel_program
from jlremote.kernels import bridge


def test_no_name_of_a_kind_makes_it_end_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server there chooses the names of kinds."""
    called: list[tuple[object, ...]] = []
    monkeypatch.setattr(bridge, "run", lambda *words: called.append(words[:3]))
    monkeypatch.setattr(bridge, "end", lambda *words: called.append(("end", *words[:2])))
    assert kernel_program.main("dgx/cont1", "--end", "connection.json") == 0
    assert kernel_program.main("--end", "dgx/cont1", "42") == 0
    assert called == [
        ("dgx/cont1", "--end", Path("connection.json")),
        ("end", "dgx/cont1", "42"),
    ]
