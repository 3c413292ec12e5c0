"""What `--gpus` asks for: the engine's own words, and more.

| written | means |
|---|---|
| `none` | no GPU, even where the image would take all |
| `all` | every GPU, whoever is on it; nothing is kept for anybody |
| `auto`, `auto:2` | so many that nobody uses |
| `2`, `count=2` | the same: the engine would take the first two, busy or not |
| `0,3`, `device=0,3` | these, by index, UUID, MIG UUID or `GPU:MIG` |
| anything else with `=` | as the engine takes it |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from jlremote.errors import Usage
from jlremote.text import one_line

_NAME = re.compile(r"\d+(:\d+)?|(GPU|MIG)-[0-9A-Za-z/-]+")


@dataclass(frozen=True)
class GpuRequest:
    """What was asked for.

    Attributes:
        kind: `free` for any that nobody uses, `named` for certain ones, `engine` for what only the
            engine understands.
        count: how many free ones.
        names: indices and UUIDs.
        text: what was written, without the quotes that the engine wants.
    """

    kind: Literal["none", "all", "free", "named", "engine"]
    text: str
    count: int = 0
    names: tuple[str, ...] = ()

    @property
    def automatic(self) -> bool:
        """Whether only jlr can choose, because the engine has no word for it."""
        return self.text.startswith("auto")


def parse_request(text: str) -> GpuRequest:
    """Return what `--gpus TEXT` asks for.

    Raises:
        Usage: nothing that anybody understands.
    """
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == '"' and bare.count('"') == 2:
        bare = bare[1:-1]  # docker's manual writes --gpus '"device=0,2"'
    if bare in ("none", "all"):
        return GpuRequest("none" if bare == "none" else "all", bare)
    names = tuple(bare.removeprefix("device=").split(","))
    counted = re.fullmatch(r"(?:count=|auto:)?(\d{1,4})|auto", bare)
    if counted:
        return _counted(bare, int(counted[1] or 1))
    if all(_NAME.fullmatch(name) for name in names):
        return GpuRequest("named", bare, names=names)
    if "=" in bare:
        return GpuRequest("engine", bare)
    raise Usage(
        f"`--gpus {one_line(text)}` asks for nothing that there is",
        hint="write `none`, `all`, `auto`, `auto:2`, `2`, `0,3`, a UUID, or what the engine takes",
    )


def is_met(text: str, have: str | None) -> bool:
    """Return whether a container that was created with the GPUs `have` is what is asked for."""
    asked = parse_request(text)
    if asked.kind == "none":
        return have in (None, "none")
    if asked.kind == "free":
        return have not in (None, "all", "none") and len(_names(have)) == asked.count
    return have is not None and set(_names(have)) == set(_names(asked.text))


def _names(text: str | None) -> list[str]:
    return (text or "").removeprefix("device=").split(",")


def _counted(text: str, count: int) -> GpuRequest:
    if count == 0:
        raise Usage(
            f"`--gpus {text}` asks for no GPU at all",
            hint="the first one is `--gpus device=0`, none is `--gpus none`",
        )
    return GpuRequest("free", text, count=count)
