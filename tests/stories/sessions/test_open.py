"""`jlr open` waits for a forward that is up, and says how to start a session that is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.hosts.halted import again
from jlremote.laptop.sessions import SessionRecord

RECORD = SessionRecord("dgx", "cont1", "docker", 8901, image="torch")


@pytest.mark.parametrize(
    ("record", "gone", "command"),
    [
        (RECORD, False, "jlr start dgx cont1"),
        (RECORD, True, "jlr start dgx cont1 --image torch"),
        (replace(RECORD, image=None), True, "jlr start dgx cont1"),
        (replace(RECORD, runtime="none", image=None), False, "jlr start dgx cont1 --runtime none"),
        (replace(RECORD, runtime="slurm", image=None), False, "jlr restart dgx/cont1"),
        (replace(RECORD, runtime="slurm apptainer"), True, "jlr restart dgx/cont1"),
    ],
)
def test_the_hint_starts_a_session_as_it_was(
    record: SessionRecord, gone: bool, command: str
) -> None:
    assert again(record, "container-gone" if gone else "down") == f"`{command}` starts it again"
