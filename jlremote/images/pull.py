"""`jlr image pull` and `jlr image push`: copy images between a host and a registry."""

from __future__ import annotations

from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_on
from jlremote.hosts.links import connect, link_on
from jlremote.hosts.requests import ANY_ENGINE, EngineChoice
from jlremote.images import image_commands, image_files, image_names, registry_keys
from jlremote.images.image_commands import Image
from jlremote.images.image_errors import FailedTransfer, transfer_error
from jlremote.images.image_files import is_reference
from jlremote.images.registry_keys import with_keys
from jlremote.images.transfers import Transfer, follow, surviving_disconnect, watched
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.link.client.link import Link
from jlremote.place.runtimes.engine.engine_errors import EngineMissing
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.table import AUTO


def pull(host: str, image: str, context: Context, wanted: EngineChoice = ANY_ENGINE) -> Image:
    """Pull an image on a host, and return it (`NotFound`; `Authentication`; else `JlrError`)."""
    program = wanted.runtime
    if program == AUTO and is_reference(image):  # engines take no name with `docker://`
        program = IMAGE_RUNTIMES[0]
    if program in IMAGE_RUNTIMES:
        link = connect(link_on(host, context), context)
        return image_files.pull(link, program, image, wanted.image_folder, context)
    image_names.parse(image)
    try:
        link, engine = connected(host, context, wanted)
    except EngineMissing as missing:
        missing.hint = image_files.way(link_on(host, context)) or missing.hint
        raise
    transfer(link, engine, "pull", image, context)
    return image_commands.image_on(link, engine, image)


def push(host: str, image: str, context: Context, wanted: EngineChoice = ANY_ENGINE) -> None:
    """Push a host's image to its registry (`NotFound`: it has none; `Authentication`: no key)."""
    image_names.parse(image)
    link, engine = connected(host, context, wanted)
    transfer(link, engine, "push", image, context)


def connected(host: str, context: Context, wanted: EngineChoice) -> tuple[Link, Engine]:
    """Connect to a host; return its link and the engine that can be used there."""
    link = connect(link_on(host, context), context)
    return link, engine_on(link, wanted)


def transfer(host: Link, engine: Engine, verb: str, image: str, context: Context) -> None:
    """`pull` or `push` an image (`verb`), as a step.

    Raise `NotFound` if the registry, or for a push the host, has no such image; `Usage` if it is a
    whole id, which no registry knows.
    """
    keys = registry_keys.find(host.name, (image_names.parse(image).registry,))

    def script(engine: Engine) -> str:
        return surviving_disconnect(watched(engine, engine(verb, "--", image)))

    text = with_keys(engine, script) if keys else script(engine)
    given = [registry_keys.docker_config(keys)] if keys else []
    moved = Transfer()
    with context.progress.step(f"{verb.capitalize()} {image}"):
        try:
            status = follow(host, text, given, moved, context)
        except KeyboardInterrupt:
            context.progress.note(f"did not {verb} `{image}`; {_kept(engine, verb)}")
            raise
        if status != 0:
            failed = FailedTransfer(engine, verb, image, host.name)
            raise transfer_error(failed, moved.complaint, status)


def _kept(engine: Engine, verb: str) -> str:
    """Return what an interrupted transfer leaves (docker 20.10, podman 4.3)."""
    if verb == "push":
        return "the registry keeps the layers that have arrived"
    if engine.kind.keeps_layers:
        return f"{engine.kind.program} keeps the layers that are complete"
    return "docker keeps no part of it, unless it has containerd's image store"
