"""One link at a time holds the lock, and its lost files are made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.link.service.link_process import IDLE_SECONDS, IDLE_VARIABLE, idle_seconds
from jlremote.link.service.link_socket import LinkSocket
from jlremote.link.wire.link_files import LinkFiles, link_files


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinkFiles:
    tmp_path.chmod(0o700)
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return link_files("dgx", None)


def test_only_one_link_gets_the_lock_until_it_is_released(files: LinkFiles) -> None:
    first, second = LinkSocket(files), LinkSocket(files)
    assert first.claim(0)
    assert not second.claim(0)
    first.close()
    assert second.claim(0)
    second.close()


def test_a_link_makes_its_own_secret_and_takes_it_away(files: LinkFiles) -> None:
    socket = LinkSocket(files)
    assert socket.claim(0)
    socket.open().close()
    assert files.key.read_bytes() == socket.secret != LinkSocket(files).secret
    assert files.key.stat().st_mode & 0o077 == 0
    socket.close()
    assert not files.key.exists()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, IDLE_SECONDS), ("60", 60.0), ("0", 1.0), ("-5", 1.0), ("soon", IDLE_SECONDS)],
)
def test_an_idle_link_stays_as_long_as_the_variable_says(value: str | None, seconds: float) -> None:
    environment = {} if value is None else {IDLE_VARIABLE: value}
    assert idle_seconds(environment) == seconds
