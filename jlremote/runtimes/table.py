"""The runtimes by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jlremote.errors import Usage
from jlremote.runtimes.bare import Bare
from jlremote.runtimes.containers import Containers
from jlremote.runtimes.contract import Runtime
from jlremote.runtimes.engine import DOCKER

RUNTIMES: Mapping[str, Runtime] = MappingProxyType(
    {runtime.name: runtime for runtime in (Containers(DOCKER), Bare())}
)


def runtime_named(name: str) -> Runtime:
    """Return the runtime called `name`; `auto` is the container engine.

    Raises:
        Usage: there is no such runtime.
    """
    chosen = RUNTIMES.get(DOCKER.name if name == "auto" else name)
    if chosen is None:
        raise Usage(
            f"there is no runtime `{name}`", hint=f"use one of: auto, {', '.join(RUNTIMES)}"
        )
    return chosen
