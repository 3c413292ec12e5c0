"""Other ways to create a container if docker is too old for the usual one.

Before 20.10 `create` has no `--pull=never`, and before 19.03 no `--gpus`; later ones have `--gpus`
in vain if dockerd did not find NVIDIA's toolkit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jlremote.place.host.contract import Completed, Steps
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, Engine

NO_PULL_OPTION = "unknown flag: --pull"
# Docker's errors, in lower case. The second is that of a new client with an old daemon.
_NO_GPUS: Mapping[str, str] = {
    "unknown flag: --gpus": "knows no `--gpus`",
    '"--gpus" requires api version': "knows no `--gpus`",
    "could not select device driver": "has no NVIDIA toolkit for its `--gpus`",
}
KNOWS_NO_GPUS = tuple(words for words, why in _NO_GPUS.items() if "knows" in why)
_OPTIONS, _TOOL = "docker-options", "old-tool"


@dataclass(frozen=True)
class OtherWay:
    """Another way to create the same container."""

    engine: Engine
    why: str | None = None  # the reason, for a note; `None` if there is no difference to notice


def instead(engine: Engine, refused: Completed) -> OtherWay | None:
    """Return another way to create a container, `None` if docker's age is not the cause."""
    if engine.kind.program != DOCKER.kind.program:
        return None
    complaint = refused.stderr.lower()
    if NO_PULL_OPTION in complaint:
        return OtherWay(_without_pull(engine))
    why = next((why for words, why in _NO_GPUS.items() if words in complaint), None)
    return OtherWay(_old_tool(engine), f"`{engine.name}` on the host {why}") if why else None


def steps(engine: Engine) -> Steps:
    """Return the steps that list docker's options, which depend on its daemon's age, too."""
    if engine.kind is not DOCKER.kind:
        return {}
    return {
        _OPTIONS: command_line(engine("create", "--help")),
        _TOOL: f"command -v {_old_tool(engine).kind.program}",
    }


def foreseen(engine: Engine, told: Mapping[str, Completed], *, gpus: bool) -> OtherWay:
    """Return how a container will be created, from the output of `steps`."""
    options = told.get(_OPTIONS)
    if options is None or options.status != 0:
        return OtherWay(engine)
    if gpus and "--gpus" not in options.stdout and told[_TOOL].status == 0:
        return OtherWay(_old_tool(engine), f"`{engine.name}` on the host knows no `--gpus`")
    return OtherWay(engine if "--pull" in options.stdout else _without_pull(engine))


def _without_pull(engine: Engine) -> Engine:
    return replace(engine, kind=replace(engine.kind, pulls_never=False))


def _old_tool(engine: Engine) -> Engine:
    in_front = (other for other in ENGINES.values() if other.kind.everyday == engine.kind.program)
    return next(other for other in in_front if other.behind_sudo == engine.behind_sudo)
