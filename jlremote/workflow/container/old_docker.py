"""Creation of a container by other means if docker is too old for the usual ones."""

from __future__ import annotations

from collections.abc import Callable

from jlremote.host.contract import Completed
from jlremote.runtimes.docker import old_docker
from jlremote.runtimes.docker.old_docker import OtherWay
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.engine.engine_errors import EngineUnusable, engine_error
from jlremote.runtimes.table import AUTO
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.requests import StartRequest

Attempt = Callable[[Engine], Completed]


def attempted(
    engine: Engine, request: StartRequest, context: Context, attempt: Attempt
) -> tuple[Engine, Completed]:
    """Create a container by `attempt`; return the engine that did, and the outcome.

    Only a refusal costs a second attempt. An engine that the person named is not replaced.
    """
    done = attempt(engine)
    while done.status != 0 and (other := old_docker.instead(engine, done)) is not None:
        if other.why is not None and request.runtime != AUTO:
            break
        again = attempt(other.engine)
        if again.status != 0 and isinstance(engine_error(other.engine, again), EngineUnusable):
            break  # without such a tool, docker's own refusal is what matters
        _tell(other, context)
        engine, done = other.engine, again
    return engine, done


def foreseen(start: StartContext) -> Engine:
    """Return the engine that would create a container; asks the host."""
    steps = old_docker.steps(start.engine)
    if not steps:
        return start.engine
    gpus = start.request.runtime == AUTO and start.request.gpus not in (None, "none")
    other = old_docker.foreseen(start.engine, start.host.run(steps), gpus=gpus)
    _tell(other, start.context)
    return other.engine


def _tell(other: OtherWay, context: Context) -> None:
    if other.why is not None:
        context.progress.note(f"{other.engine.name} is used, as {other.why}")
