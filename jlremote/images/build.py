"""`jlr image build`: build an image on a host from a folder on this laptop."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from jlremote.errors import LinkLost, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.requests import ANY_ENGINE, EngineChoice
from jlremote.images import image_commands, image_names, registry_keys
from jlremote.images.build_context import BuildContext, read_context
from jlremote.images.image_errors import build_error
from jlremote.images.pull import connected
from jlremote.images.registry_keys import with_keys, with_secrets
from jlremote.images.transfers import one_at_a_time, surviving_disconnect
from jlremote.link.client.link import Link
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import typed_path
from jlremote.place.host.sudo import endable
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.text import printable, reason_of, size_in_words

KEPT_LINES = 40
LONGEST_LINE = 1 << 16  # of which the end is kept
# The image that a line of a Dockerfile builds on.
_FROM = re.compile(
    r"^\s*FROM\s+(?:--\S+\s+)*([^\s$]+)\s*(?:AS\s.*)?$", re.IGNORECASE | re.MULTILINE
)
_SENDING = "Sending build context to Docker daemon"
_NO_FOLDER = 9  # the status of a script that does not find the folder


@dataclass(frozen=True)
class BuildRequest:
    """`jlr image build HOST FOLDER`."""

    host: str  # what `ssh HOST` takes
    folder: Path | None  # the folder that is sent, `None` with `on_host`
    tags: tuple[str, ...]  # the image's names
    dockerfile: Path | None = None  # `None` for the folder's own
    arguments: tuple[str, ...] = ()  # `NAME=VALUE`
    engine: EngineChoice = ANY_ENGINE
    on_host: str | None = None  # a folder of the host, from which nothing is sent
    no_cache: bool = False
    target: str | None = None  # the stage of the Dockerfile to build, `None` for the last
    platform: str | None = None  # `linux/arm64`, `None` for the host's
    # files of the laptop by name, which a step of the build can read and no image keeps
    secrets: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildReport:
    """An image that was built."""

    host: str
    tags: tuple[str, ...]
    id: str
    size: int


def build(request: BuildRequest, context: Context) -> BuildReport:
    """Send a folder to the host, build an image there, and report the output of the build.

    Once all is sent, the build outlasts the connection. It is joined again by docker's cache, and
    so not without one. Raise `Usage` if a name is invalid or missing; `NotFound` if there is no
    such folder or Dockerfile; `JlrError` if the build failed, and its output was shown.
    """
    if not request.tags:
        raise Usage("the image needs a name", hint="add `--tag NAME[:TAG]`")
    for tag in request.tags:
        image_names.parse_new(tag)
    folder = None if request.folder is None else read_context(request.folder, request.dockerfile)
    given = _read_secrets(request.secrets)
    host, engine = connected(request.host, context, request.engine)
    source = folder or _on_host(host, request)
    building = Building(host, engine, request, source, given, context)
    try:
        while not building.is_seen_to_end():
            context.progress.note("the connection broke; the build goes on there; reconnecting")
    except LinkLost as lost_link:
        anew = " without `--no-cache`" if request.no_cache else ""
        lost_link.hint = (
            f"build again{anew}: if all was sent, the build goes on there and is then cached"
        )
        raise
    except KeyboardInterrupt:
        prune = f"`{engine.shown('builder', 'prune')}` on `{request.host}`"
        context.progress.note(
            f"nothing is built; {engine.name} keeps the finished steps in its cache for the next "
            f"build ({prune} removes them)"
        )
        raise
    image = image_commands.image_on(host, engine, request.tags[0])
    return BuildReport(request.host, request.tags, image.id, image.size)


@dataclass
class BuildLog:
    """The output of a build so far, with its last lines."""

    lines: list[str] = field(default_factory=list)
    _begun: str = ""

    def take(self, text: str) -> list[str]:
        """Take the next output; return the lines that are worth showing."""
        *whole, begun = (self._begun + printable(text)).split("\n")
        self._begun = begun[-LONGEST_LINE:]
        shown = [line for line in whole if not line.startswith(_SENDING)]
        self.lines = [*self.lines, *filter(str.strip, shown)][-KEPT_LINES:]
        return shown

    def finish(self) -> list[str]:
        """Take and return the last line, even if no line break ends it."""
        return self.take("\n") if self._begun else []


@dataclass(frozen=True)
class Building:
    """A build of an image on a host."""

    host: Link
    engine: Engine
    request: BuildRequest
    source: BuildContext
    hidden: Sequence[bytes]  # the lines that carry secrets
    context: Context

    def is_seen_to_end(self) -> bool:
        """Build, and return `False` if the connection broke and the build can be joined again."""
        log, bases = BuildLog(), _FROM.findall(self.source.recipe)
        keys = registry_keys.find(self.host.name, registries(bases))
        command = with_keys(self.engine, self._script) if keys else self._script(self.engine)
        sent = self._sent([registry_keys.docker_config(keys)] if keys else [])
        shown = False
        try:
            # Closed at the end: a step that failed is to be told before its error.
            with closing(sent), self.host.stream(command, sent, end=True) as output:
                for text in output.text():
                    shown = True
                    self._show(log.take(text))
                self._show(log.finish())
        except LinkLost:
            if not shown or self.request.no_cache:
                raise
            return False
        if output.status != 0:
            raise build_error(self.engine, log.lines, bases, self.host.name, output.status or 1)
        return True

    def _script(self, engine: Engine) -> str:
        request, source = self.request, self.source
        kept = f"/tmp/jlr-{secrets.token_hex(16)}"  # noqa: S108  # `mkdir` fails if it is there
        if request.secrets:  # docker's other builder knows none
            engine = engine.with_variables(DOCKER_BUILDKIT="1")
        values = {
            "tag": request.tags,
            "file": (source.dockerfile,),
            "build-arg": request.arguments,
            "target": filter(None, (request.target,)),
            "platform": filter(None, (request.platform,)),
            "secret": (f"id={name},src={kept}/{name}" for name in request.secrets),
        }
        options = [f"--{option}={each}" for option, given in values.items() for each in given]
        cache = ("--no-cache",) if request.no_cache else ()
        folder, go = "-", ""  # a tar archive on stdin
        if request.on_host is not None:
            folder, go = ".", f"cd {typed_path(request.on_host)} || exit\n"
        # `--force-rm` removes the container of a step that fails.
        command = endable(engine("build", "--force-rm", *cache, *options, folder))
        if request.secrets:
            command = with_secrets(kept, tuple(request.secrets), command)
        name = hashlib.sha256(request.tags[0].encode()).hexdigest()[:16]
        return go + surviving_disconnect(one_at_a_time(f"build-{name}", command))

    def _show(self, lines: Sequence[str]) -> None:
        if lines:
            self.context.progress.note("\n".join(lines))

    def _sent(self, key: Sequence[bytes]) -> Generator[bytes]:
        yield from (*key, *self.hidden)
        folder, request = self.source, self.request
        if request.on_host is not None:
            return
        sent, whole = 0, size_in_words(folder.size)
        with self.context.progress.step(f"Send {request.folder} ({whole}) to {request.host}"):
            for piece in folder.archive():
                sent += len(piece)
                self.context.progress.advance(f"{size_in_words(min(sent, folder.size))} of {whole}")
                yield piece


def _on_host(host: Link, request: BuildRequest) -> BuildContext:
    folder = str(request.on_host)
    file = "Dockerfile" if request.dockerfile is None else request.dockerfile.as_posix()
    script = f"cd {typed_path(folder)} 2>/dev/null || exit {_NO_FOLDER}; cat -- {shlex.quote(file)}"
    read = run_script(host, script)
    if read.status == _NO_FOLDER:
        what = f"there is no folder `{folder}` on `{host.name}`"
        raise NotFound(what, hint="name the folder of the Dockerfile there")
    if read.status != 0:
        raise NotFound(
            f"cannot read the Dockerfile `{file}` in `{folder}` of `{host.name}`: {read.complaint}",
            hint="name the folder on the host, and the Dockerfile with `-f FILE`",
        )
    return BuildContext(file, read.stdout, ())


def _read_secrets(files: Mapping[str, Path]) -> list[bytes]:
    try:
        return [base64.b64encode(file.read_bytes()) + b"\n" for file in files.values()]
    except OSError as error:
        raise Usage(f"cannot read the secret `{error.filename}`: {reason_of(error)}") from error


def registries(images: Sequence[str]) -> list[str]:
    """Return the registries of images, without those of invalid names."""
    names = []
    for image in images:
        with suppress(Usage):  # the build reports the line
            names.append(image_names.parse(image).registry)
    return names
