"""What a copy is compared with."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def same(one: Path, other: Path) -> None:
    names = [sorted(str(path.relative_to(top)) for path in top.rglob("*")) for top in (one, other)]
    assert [name for name in names[0] if name not in ("out", "pipe")] == names[1]
    for name in names[1]:
        path, twin = one / name, other / name
        if path.is_symlink():
            assert os.readlink(twin) == os.readlink(path)  # noqa: PTH115
            continue
        assert stat.S_IMODE(twin.stat().st_mode) == stat.S_IMODE(path.stat().st_mode), name
        if path.is_file():  # busybox does not keep the times of folders
            assert twin.read_bytes() == path.read_bytes()
            assert int(twin.stat().st_mtime) == int(path.stat().st_mtime), name
