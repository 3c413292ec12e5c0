"""`jlr build`: build an image on a host from a folder on this laptop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jlremote.errors import LinkLost, Usage
from jlremote.host.contract import run_script
from jlremote.host.shell_text import command_line
from jlremote.host.sudo import endable
from jlremote.images import commands as docker
from jlremote.images import image_names
from jlremote.images.build_log import FROM, BuildLog
from jlremote.images.image_errors import build_error
from jlremote.images.key_scripts import surviving_disconnect, with_keys
from jlremote.link.client.link import Link
from jlremote.runtimes.engine.engine import Engine
from jlremote.text import size_in_words
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.requests import ANY_ENGINE, EngineChoice
from jlremote.workflow.images import registry_keys
from jlremote.workflow.images.build_context import BuildContext, read_context
from jlremote.workflow.images.registry import connected


@dataclass(frozen=True)
class BuildRequest:
    """`jlr build HOST FOLDER`."""

    host: str  # what `ssh HOST` takes
    folder: Path  # the folder that is sent
    tags: tuple[str, ...]  # the image's names
    dockerfile: Path | None = None  # `None` for the folder's own
    arguments: tuple[str, ...] = ()  # `NAME=VALUE`, or `NAME` for its value on the host
    engine: EngineChoice = ANY_ENGINE


@dataclass(frozen=True)
class BuildReport:
    """An image that was built."""

    host: str
    tags: tuple[str, ...]
    id: str
    size: int

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return dict(vars(self)) | {"tags": [*self.tags]}


def build(request: BuildRequest, context: Context) -> BuildReport:
    """Send a folder to the host, build an image there, and report the output of the build.

    Raises:
        Usage: a name is invalid or missing.
        NotFound: there is no such folder or Dockerfile.
        JlrError: the build failed; the message says at which line of the Dockerfile.
    """
    if not request.tags:
        raise Usage("the image needs a name", hint="add `--tag NAME[:TAG]`")
    for tag in request.tags:
        image_names.parse_new(tag)
    folder = read_context(request.folder, request.dockerfile)
    host, engine = connected(request.host, context, request.engine)
    try:
        _build(host, engine, request, folder, context)
    except LinkLost as lost:
        lost.hint = "build again: if all was sent, the build goes on there and is then cached"
        raise
    except KeyboardInterrupt:
        prune = f"`{engine.shown('builder', 'prune')}` on `{request.host}`"
        context.progress.note(
            f"nothing is built; {engine.name} keeps the finished steps in its cache for the next "
            f"build ({prune} removes them)"
        )
        raise
    built = run_script(host, command_line(docker.inspect_image_argv(engine, request.tags[0])))
    image = docker.read_image(built.stdout)
    return BuildReport(request.host, request.tags, image.id, image.size)


def _build(
    host: Link, engine: Engine, request: BuildRequest, folder: BuildContext, context: Context
) -> None:
    log = BuildLog()
    keys = registry_keys.find(host.name, _registries(folder.recipe))

    def script(engine: Engine) -> str:
        argv = docker.build_argv(engine, request.tags, folder.dockerfile, request.arguments)
        return surviving_disconnect(endable(argv))

    command = with_keys(engine, script) if keys else script(engine)
    config = [registry_keys.docker_config(keys)] if keys else []
    given = _sent(folder, config, request, context)
    with host.stream(command, given, end=True) as output:
        for text in output:
            _show(log.take(text), context)
        _show(log.finish(), context)
    if output.status != 0:
        status = output.status or 1
        raise build_error(engine, log, folder.recipe, host.name, status, shown=request.dockerfile)


def _show(lines: str, context: Context) -> None:
    if lines:
        context.progress.note(lines.removesuffix("\n"))


def _registries(recipe: str) -> Iterator[str]:
    """Yield the registries of a Dockerfile's base images."""
    for image in FROM.findall(recipe):
        try:
            yield image_names.parse(image).registry
        except Usage:
            continue  # the build reports the line


def _sent(
    folder: BuildContext, config: list[bytes], request: BuildRequest, context: Context
) -> Iterator[bytes]:
    """Yield what is sent to the host, as a step that counts the bytes."""
    yield from config
    sent, whole = 0, size_in_words(folder.size)
    with context.progress.step(f"Send {request.folder} ({whole}) to {request.host}"):
        for piece in folder.archive():
            sent += len(piece)
            context.progress.advance(f"{size_in_words(min(sent, folder.size))} of {whole}")
            yield piece
