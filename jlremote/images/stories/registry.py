"""`jlr pull` and `jlr push`: copy images between a host and a registry."""

from __future__ import annotations

from jlremote.errors import Authentication, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_on
from jlremote.hosts.links import connect, link_on
from jlremote.hosts.requests import ANY_ENGINE, EngineChoice
from jlremote.images import commands as docker
from jlremote.images import image_names
from jlremote.images.commands import Image
from jlremote.images.image_errors import FailedTransfer, transfer_error
from jlremote.images.image_files import is_reference
from jlremote.images.image_names import ImageName
from jlremote.images.key_scripts import surviving_disconnect, with_keys
from jlremote.images.stories import image_files, registry_keys
from jlremote.images.transfers import Transfer, watched
from jlremote.laptop.secrets import Secrets
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.link.client.link import Link
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.engine_errors import EngineMissing
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.table import AUTO

# The digits of a shown id; a name of only that many hexadecimal digits is taken for an id.
SHORT_ID = 12


def pull(host: str, image: str, context: Context, wanted: EngineChoice = ANY_ENGINE) -> Image:
    """Pull an image on a host, and return it.

    Raises:
        NotFound: the registry has no such image.
        Authentication: the registry wants a key, or another one.
        JlrError: the registry is out of reach, no space is left, …
    """
    # Engines take no name with `docker://`, so it says that a file is to be made of it.
    program = (
        IMAGE_RUNTIMES[0] if wanted.runtime == AUTO and is_reference(image) else wanted.runtime
    )
    if program in IMAGE_RUNTIMES:
        link = link_on(host, context)
        connect(link, context)
        return image_files.pull(link, program, image, wanted.image_folder, context)
    keychain = registry_keys.begin(host, (image_names.parse(image).registry,))
    try:
        link, engine = connected(host, context, wanted)
    except EngineMissing as missing:
        missing.hint = image_files.way(link_on(host, context)) or missing.hint
        raise
    fetch(link, engine, image, context, keychain)
    inspected = run_script(link, command_line(docker.inspect_image_argv(engine, image)))
    return docker.read_image(inspected.stdout)


def push(host: str, image: str, context: Context, wanted: EngineChoice = ANY_ENGINE) -> None:
    """Push an image of a host to the registry that its name begins with.

    Raises:
        NotFound: the host has no such image.
        Authentication: the registry wants a key, or another one.
        JlrError: the registry is out of reach, …
    """
    name = image_names.parse(image)
    keychain = registry_keys.begin(host, (name.registry,))
    link, engine = connected(host, context, wanted)
    with context.progress.step(f"Push {image}"):
        _transfer(link, engine, "push", image, name, context, keychain)


def fetch(
    host: Link, engine: Engine, image: str, context: Context, keychain: Secrets | None = None
) -> None:
    """Pull an image that the host does not have, as a step.

    `keychain` is one that is being opened already.

    Raises:
        NotFound: the registry does not have it either, or it is an id, which no registry knows.
    """
    if image_names.may_be_id(image):
        _refuse_id(host, engine, image)
    with context.progress.step(f"Pull {image}"):
        name = _name(image)
        _transfer(host, engine, "pull", image, name, context, keychain)


def _refuse_id(host: Link, engine: Engine, image: str) -> None:
    """Raise if `image` is an id of no image on the host, or of several."""
    listed = run_script(host, command_line(engine("image", "ls", "--all", "--quiet", "--no-trunc")))
    begin = image.removeprefix("sha256:")
    ids = {line.removeprefix("sha256:") for line in listed.stdout.split()}
    those = sorted(one for one in ids if one.startswith(begin))
    hint = f"`jlr images {host.name} --all` lists the ids"
    if len(those) > 1:
        raise NotFound(f"{len(those)} images' ids on `{host.name}` begin with `{image}`", hint=hint)
    if not those and (begin != image or len(begin) >= SHORT_ID):
        raise NotFound(f"there is no image with the id `{image}` on `{host.name}`", hint=hint)


def connected(host: str, context: Context, wanted: EngineChoice) -> tuple[Link, Engine]:
    """Connect to a host; return its link and the engine that can be used there."""
    link = link_on(host, context)
    connect(link, context)
    return link, engine_on(link, wanted)


def _name(image: str) -> ImageName | None:
    """Return the parts of an image's name, `None` if it can only be an id."""
    try:
        return image_names.parse(image)
    except Usage:
        if image_names.may_be_id(image):
            return None
        raise


def _transfer(
    host: Link,
    engine: Engine,
    verb: str,
    image: str,
    name: ImageName | None,
    context: Context,
    keychain: Secrets | None,
) -> None:
    """Run a pull or push and follow it, also across a broken connection."""
    keys = registry_keys.find(host.name, () if name is None else (name.registry,), keychain)

    def script(engine: Engine) -> str:
        return surviving_disconnect(watched(engine, engine(verb, "--", image)))

    text = with_keys(engine, script) if keys else script(engine)
    given = [registry_keys.docker_config(keys)] if keys else []
    transfer = Transfer()
    try:
        status = image_files.follow(host, text, given, transfer, context)
    except KeyboardInterrupt:
        context.progress.note(f"did not {verb} `{image}`; {_kept(engine, verb)}")
        raise
    if status != 0:
        failed = FailedTransfer(engine, verb, image, name, host.name)
        error = transfer_error(failed, transfer.complaint, status)
        if isinstance(error, (Authentication, NotFound)):  # many refuse what they do not have
            hints = (_resembling(host, engine, image), error.hint)
            error.hint = " ".join(filter(None, hints)) or None
        raise error


def _resembling(host: Link, engine: Engine, image: str) -> str | None:
    """Return the hint with the host's image whose name is spelled like `image`, if one is.

    A name that the host has itself, as before a push, is not misspelt.
    """
    named = engine("image", "ls", "--filter=dangling=false", "--format={{.Repository}}:{{.Tag}}")
    names = run_script(host, command_line(named)).stdout.split()
    if any(image_names.same(image, name) for name in names):
        return None
    near = image_names.closest_image(image, names)
    return near and f"did you mean `{near}`, which `{host.name}` has?"


def _kept(engine: Engine, verb: str) -> str:
    """Say what an interrupted transfer leaves, as of docker 20.10 and podman 4.3."""
    if verb == "push":
        return "the registry keeps the layers that have arrived"
    if engine.kind.keeps_layers:
        return f"{engine.kind.program} keeps the layers that are complete"
    return "docker keeps no part of it, unless it has containerd's image store"
