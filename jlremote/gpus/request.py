"""The value of `--gpus`: the engine's own forms, and more.

| value | GPUs |
|---|---|
| `none` | none, even if the image would take all |
| `all` | all, in use or not; none is reserved |
| `auto`, `auto:2` | one or two free ones |
| `2`, `count=2` | two free ones (the engine itself would take the first two) |
| `0,3`, `device=0,3` | these, by index, UUID, MIG UUID or `GPU:MIG` |
| anything else with `=` | passed on to the engine |
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
    """A parsed value of `--gpus`."""

    # A number of free ones, named ones, or a value that only the engine understands.
    kind: Literal["none", "all", "free", "named", "engine"]
    text: str  # the value, without the quotes that the engine wants
    count: int = 0  # of free ones
    names: tuple[str, ...] = ()  # indices and UUIDs

    @property
    def chosen(self) -> bool:
        """Whether jlr chooses GPUs for it."""
        return self.kind in ("free", "named")

    @property
    def automatic(self) -> bool:
        """Whether only jlr can choose, as the engine has no such value."""
        return self.text.startswith("auto")


def parse_request(text: str) -> GpuRequest:
    """Return the request of `--gpus TEXT`.

    Raises:
        Usage: it is no GPU selection.
    """
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == '"' and bare.count('"') == 2:
        bare = bare[1:-1]  # docker's manual writes --gpus '"device=0,2"'
    if bare in ("none", "all"):
        return GpuRequest("none" if bare == "none" else "all", bare)
    names = tuple(_names(bare))
    if counted := re.fullmatch(r"(?:count=|auto:)?(\d{1,4})|auto", bare):
        return _counted(bare, int(counted[1] or 1))
    if all(_NAME.fullmatch(name) for name in names):
        return GpuRequest("named", bare, names=names)
    if "=" in bare:
        return GpuRequest("engine", bare)
    raise Usage(
        f"`{one_line(text)}` is not a GPU selection",
        hint="`--gpus` takes `auto`, `auto:N`, `N`, `0,3`, UUIDs, `all`, `none` or "
        "a value of the engine's own with `=`",
    )


def is_met(text: str, have: str | None) -> bool:
    """Return whether GPUs that were requested with the value `have` meet the request `text`.

    A number alone is a count in both, and `device=2` a name.
    """
    asked = parse_request(text)
    try:
        has = parse_request(have) if have else GpuRequest("none", "none")
    except Usage:  # an engine may have more values than `--gpus` takes
        return asked.text == have
    if asked.kind == "free":
        return asked.count == (has.count or len(has.names))
    return asked.kind == has.kind and (
        set(asked.names) == set(has.names) if asked.names else asked.text == has.text
    )


def _names(text: str | None) -> list[str]:
    return re.sub(r"\Adevice=", "", text or "").split(",")


def _counted(text: str, count: int) -> GpuRequest:
    if count == 0:
        raise Usage(
            f"`--gpus {text}` asks for no GPU",
            hint="`--gpus device=0` takes the first one, `--gpus none` takes none",
        )
    return GpuRequest("free", text, count=count)
