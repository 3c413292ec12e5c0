"""What the demo says on a system that it does not run on."""

from __future__ import annotations

import sys
from typing import cast

import pytest

from jlremote.demo.demo import demo
from jlremote.errors import JlrError
from jlremote.hosts.context import Context


def test_on_windows_the_demo_is_refused_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    unused = cast("Context", None)
    with pytest.raises(JlrError, match="does not run on Windows") as refusal:
        demo(unused, lambda report: pytest.fail(f"{report} was started"))
    assert refusal.value.hint is not None
    assert "WSL" in refusal.value.hint
