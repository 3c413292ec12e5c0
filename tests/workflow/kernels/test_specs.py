"""What is said of a Jupyter that jlr did not launch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.workflow.kernels.specs import tell_limits


@pytest.mark.parametrize("ours", [True, False])
def test_the_limits_of_a_jupyter_are_said_where_jlr_could_not_lift_them(ours: bool) -> None:
    said: list[str] = []
    context: Any = SimpleNamespace(progress=SimpleNamespace(note=said.append))
    record: Any = SimpleNamespace(host="dgx", name="cont1")
    server: Any = SimpleNamespace(ours=ours)
    tell_limits(record, server, context)
    assert ["`jlr output dgx/cont1` shows" in text for text in said] == ([] if ours else [True])
