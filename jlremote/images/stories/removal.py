"""`jlr rmi` and `jlr prune`: remove images from a host, and tell what that frees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jlremote import times
from jlremote.errors import Usage
from jlremote.hosts.context import Context
from jlremote.hosts.requests import ANY_ENGINE, EngineChoice
from jlremote.images import image_removal
from jlremote.images.commands import list_script
from jlremote.images.image_removal import Selection, StoredImage, shown
from jlremote.images.stories.registry import connected
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.link.client.link import Link
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker import networks
from jlremote.place.runtimes.engine.engine_errors import engine_error
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.selection.destruction import Destruction, confirm
from jlremote.text import one_line, size_in_words

_SECONDS = 3600.0


@dataclass(frozen=True)
class RemovalReport:
    """The images that were removed from a host."""

    host: str
    deleted: tuple[StoredImage, ...]
    untagged: tuple[str, ...]  # names that went, whose images stay
    freed: int  # bytes
    networks: tuple[str, ...] = ()  # those of sessions that were gone

    def to_json(self) -> dict[str, Any]:
        deleted = [{"id": one.id, "names": [*one.names], "size": one.size} for one in self.deleted]
        rest = {"untagged": [*self.untagged], "networks": [*self.networks]}
        return vars(self) | {"deleted": deleted} | rest


def remove(
    host: str,
    images: Sequence[str],
    context: Context,
    wanted: EngineChoice = ANY_ENGINE,
    *,
    yes: bool = False,
) -> RemovalReport:
    """Remove names of images, and each image that has no other name.

    Raises:
        NotFound: the host has no such image; then none is removed.
        Busy: a container uses one; then none is removed.
        JlrError: the answer was no, or the engine refuses.
    """
    link, engine = _engine(host, context, wanted)
    selection = Selection(host, _stored(link, engine, context))
    for typed in images:
        selection.add(typed)
    selection.refuse_used()
    deleted = selection.deleted
    freed = _freed(link, engine, selection.stored, deleted)
    if deleted:  # a name without its image is easily given again
        confirm(_planned(host, deleted, freed), context, yes=yes)
    argv = engine("rmi", "--", *selection.references)
    gone = _removed(link, engine, argv, deleted, context)
    whole = {name for image in gone for name in image.names}
    names = (name for chosen in selection.chosen.values() for name in chosen)
    untagged = tuple(name for name in names if name not in whole)
    return RemovalReport(host, tuple(gone), untagged, sum(freed[image.id] for image in gone))


def prune(
    host: str, context: Context, wanted: EngineChoice = ANY_ENGINE, *, yes: bool = False
) -> RemovalReport:
    """Remove the images without a name that no container uses, as builds leave them.

    The user's networks of sessions whose container is gone go, too: they hold nothing.

    Raises:
        JlrError: the answer was no, or the engine refuses.
    """
    link, engine = _engine(host, context, wanted)
    swept = run_script(link, networks.left_over(engine, remove=True))
    if swept.status != 0:
        raise engine_error(engine, swept)
    gone_networks = tuple(map(one_line, swept.stdout.splitlines()))
    stored = _stored(link, engine, context)
    listing = engine("image", "ls", "--filter=dangling=true", "--quiet", "--no-trunc")
    dangling = _digits(run_script(link, command_line(listing)).stdout)
    deleted = [image for image in stored if image.digits in dangling and not image.containers]
    if not deleted:
        return RemovalReport(host, (), (), 0, gone_networks)
    freed = _freed(link, engine, stored, deleted)
    confirm(_planned(host, deleted, freed), context, yes=yes)
    # By the engine's own choice: an image that was given a name meanwhile stays.
    gone = _removed(link, engine, engine("image", "prune", "--force"), deleted, context)
    freed_bytes = sum(freed[image.id] for image in gone)
    return RemovalReport(host, tuple(gone), (), freed_bytes, gone_networks)


def _engine(host: str, context: Context, wanted: EngineChoice) -> tuple[Link, Engine]:
    if wanted.runtime in IMAGE_RUNTIMES:
        raise Usage(
            f"images of `{wanted.runtime}` are files",
            hint=f"`jlr shell {host} -- rm FILE` deletes one",
        )
    return connected(host, context, wanted)


def _stored(link: Link, engine: Engine, context: Context) -> list[StoredImage]:
    """Return all images of a host, with the containers that use them."""
    steps = {
        "images": list_script(engine, every=False),
        "containers": image_removal.containers_script(engine),
    }
    with context.progress.step(f"Look at the images of {link.name}"):
        found = link.run(steps)
    for done in found.values():
        if done.status != 0:
            raise engine_error(engine, done)
    return image_removal.read_images(found["images"].stdout, found["containers"].stdout)


def _freed(
    link: Link, engine: Engine, stored: Sequence[StoredImage], deleted: Sequence[StoredImage]
) -> dict[str, int]:
    """Return the bytes that each image frees, by id; what two share counts for one of them."""
    shared = image_removal.sharing(stored, deleted)
    pairs = [(one.image, one.other) for one in shared if one.uncertain]
    ids = sorted({image.id for pair in pairs for image in pair if image})
    argvs = [image_removal.history_argv(engine, image_id) for image_id in ids]
    told = link.run({str(at): command_line(argv) for at, argv in enumerate(argvs)}) if ids else {}
    histories = {image_id: told[str(at)].stdout for at, image_id in enumerate(ids)}
    return {one.image.id: image_removal.freed(one, histories) for one in shared}


def _planned(host: str, deleted: Sequence[StoredImage], freed: dict[str, int]) -> Destruction:
    losses = tuple(
        f"{shown(image)} ({size_in_words(image.size)}, {times.ago(image.created)} old)"
        for image in deleted
    )
    what = "this image" if len(deleted) == 1 else f"these {len(deleted)} images"
    space = size_in_words(sum(freed.values()))
    return Destruction(f"Delete {what} of {host}, which frees {space}?", losses)


def _removed(
    link: Link, engine: Engine, argv: Argv, deleted: Sequence[StoredImage], context: Context
) -> list[StoredImage]:
    """Run the engine's command; return the images that are gone.

    Raises:
        JlrError: the engine refuses, as where a container has just begun to use an image.
    """
    every = engine("image", "ls", "--all", "--quiet", "--no-trunc")
    with context.progress.step(f"Remove images of {link.name}"):
        steps = {"remove": command_line(argv), "left": command_line(every)}
        done = link.run(steps, timeout=_SECONDS)
        left = _digits(done["left"].stdout)
        gone = [image for image in deleted if image.digits not in left]
        if done["remove"].status != 0:
            if gone:
                context.progress.note(f"deleted {', '.join(map(shown, gone))}")
            raise engine_error(engine, done["remove"])
    return gone


def _digits(ids: str) -> set[str]:
    """Return the ids of a list; podman prints some with `sha256:` and some without."""
    return {line.removeprefix("sha256:") for line in ids.split()}
