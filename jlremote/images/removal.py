"""`jlr image rm` and `jlr image prune`: remove images from a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jlremote import times
from jlremote.errors import Busy, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.requests import ANY_ENGINE, EngineChoice
from jlremote.images import image_commands, image_names
from jlremote.images.pull import connected
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.laptop.typed_place import host_word
from jlremote.link.client.link import Link
from jlremote.place.host.contract import run_script, understood
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker import networks
from jlremote.place.runtimes.engine.engine_errors import engine_error
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.selection.destruction import Destruction, confirm
from jlremote.text import listed, one_line, size_in_words
from jlremote.untrusted import document, number

_SECONDS = 3600.0
_USED = '{"image":{{json .Image}},"name":{{json .Name}}}'
_LISTED = 3
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class StoredImage:
    """An image on a host, with what uses it."""

    id: str
    names: tuple[str, ...]  # none for an image that a build or a pull has left behind
    created: str  # when it was built, ISO 8601
    size: int  # bytes, with the layers that it shares with other images
    containers: tuple[str, ...] = ()  # names of the containers that use it, stopped ones too


@dataclass(frozen=True)
class RemovalReport:
    """The images that were removed from a host."""

    host: str
    deleted: tuple[StoredImage, ...]
    untagged: tuple[str, ...]  # names that went, whose images stay
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
    """Remove names of images, and images left without; none if one is missing or used (`Busy`)."""
    for typed in images:
        image_names.check(typed)
    link, engine = _engine(host, context, wanted)
    stored = _stored(link, engine, context)
    chosen: dict[str, list[str]] = {}  # names by the image's id
    for typed in images:
        image, name = find(host, stored, typed)
        names = chosen.setdefault(image.id, [])
        names += [name] if name is not None and name not in names else []
    # An image that loses its last name is deleted.
    deleted = [one for one in stored if one.id in chosen and len(chosen[one.id]) == len(one.names)]
    _refuse_used(host, deleted)
    if deleted:  # a name without its image is easily given again
        confirm(_planned(host, deleted), context, yes=yes)
    references = [each for image_id, names in chosen.items() for each in names or [image_id]]
    gone = _removed(link, engine, engine("rmi", "--", *references), deleted, context)
    whole = {name for image in gone for name in image.names}
    untagged = [name for names in chosen.values() for name in names if name not in whole]
    return RemovalReport(host, tuple(gone), tuple(untagged))


def prune(
    host: str, context: Context, wanted: EngineChoice = ANY_ENGINE, *, yes: bool = False
) -> RemovalReport:
    """Remove what builds leave unnamed and unused, and own networks of sessions that are gone."""
    link, engine = _engine(host, context, wanted)
    swept = run_script(link, networks.left_over(engine, remove=True))
    if swept.status != 0:
        raise engine_error(engine, swept)
    gone_networks = tuple(map(one_line, swept.stdout.splitlines()))
    stored = _stored(link, engine, context)
    listing = engine("image", "ls", "--filter=dangling=true", "--quiet", "--no-trunc")
    dangling = _ids(run_script(link, command_line(listing)).stdout)
    deleted = [image for image in stored if _digits(image.id) in dangling and not image.containers]
    if not deleted:
        return RemovalReport(host, (), (), gone_networks)
    confirm(_planned(host, deleted), context, yes=yes)
    # By the engine's own choice: an image that was given a name meanwhile stays.
    gone = _removed(link, engine, engine("image", "prune", "--force"), deleted, context)
    return RemovalReport(host, tuple(gone), (), gone_networks)


def _engine(host: str, context: Context, wanted: EngineChoice) -> tuple[Link, Engine]:
    if wanted.runtime in IMAGE_RUNTIMES:
        what = f"images of `{wanted.runtime}` are files"
        raise Usage(what, hint=f"`jlr shell {host_word(host)} -- rm FILE` deletes one")
    return connected(host, context, wanted)


def _stored(link: Link, engine: Engine, context: Context) -> list[StoredImage]:
    containers = image_commands.each_inspected(
        engine("container", "ls", "--all"), engine("container", "inspect", "--format", _USED)
    )
    steps = {"images": image_commands.list_script(engine, every=False), "containers": containers}
    with context.progress.step(f"Look at the images of {link.name}"):
        answers = link.run(steps)
    for done in answers.values():
        if done.status != 0:
            raise engine_error(engine, done)
    return read_images(answers["images"].stdout, answers["containers"].stdout)


def _planned(host: str, deleted: Sequence[StoredImage]) -> Destruction:
    losses = tuple(
        f"{shown(image)} ({size_in_words(image.size)}, {times.ago(image.created)} old)"
        for image in deleted
    )
    what = "this image" if len(deleted) == 1 else f"these {len(deleted)} images"
    return Destruction(f"Delete {what} of {host}?", losses)


def _removed(
    link: Link, engine: Engine, argv: Argv, deleted: Sequence[StoredImage], context: Context
) -> list[StoredImage]:
    every = engine("image", "ls", "--all", "--quiet", "--no-trunc")
    with context.progress.step(f"Remove images of {link.name}"):
        steps = {"remove": command_line(argv), "left": command_line(every)}
        done = link.run(steps, timeout=_SECONDS)
        left = _ids(done["left"].stdout)
        gone = [image for image in deleted if _digits(image.id) not in left]
        if done["remove"].status != 0:
            if gone:
                context.progress.note(f"deleted {', '.join(map(shown, gone))}")
            raise engine_error(engine, done["remove"])
    return gone


def _ids(printed: str) -> set[str]:
    return set(map(_digits, printed.split()))


@understood("the container engine")
def read_images(images: str, containers: str) -> list[StoredImage]:
    """Return the images with the containers that use each, by what the scripts printed."""
    used: dict[str, list[str]] = {}
    for facts in map(document, containers.splitlines()):
        used.setdefault(_digits(facts["image"]), []).append(one_line(facts["name"]).strip("/"))
    return [
        StoredImage(
            str(facts["id"]),
            tuple(name for name in facts["names"] or () if "<none>" not in name),
            str(facts["created"]),
            round(number(facts["size"])),
            tuple(used.get(_digits(facts["id"]), ())),
        )
        for facts in map(document, images.splitlines())
    ]


def _digits(image_id: str) -> str:
    """Return an id without `sha256:`, which podman leaves out."""
    return image_id.removeprefix("sha256:")


def find(host: str, stored: Sequence[StoredImage], typed: str) -> tuple[StoredImage, str | None]:
    """Return an image and the name it loses, `None` for an id (`NotFound`; `Usage`: ambiguous)."""
    for image in stored:
        for name in image.names:
            if any(
                image_names.same(each, name) for each in (typed, f"{image_names.LOCAL}/{typed}")
            ):
                return image, name
    images = [one for one in stored if _digits(one.id).startswith(_digits(typed))]
    if not image_names.may_be_id(typed) or not images:
        raise NotFound(  # without a name that is like it, which would be deleted
            f"there is no image `{one_line(typed)}` on `{host}`",
            hint=f"`jlr image list {host} --all` lists the images",
        )
    if len(images) > 1:
        raise Usage(f"`{typed}` stands for {len(images)} images of `{host}`")
    names = images[0].names
    if len(names) > 1:
        several = ", ".join(f"`{name}`" for name in names)
        hint = "name those to remove"
        raise Usage(f"the image `{typed}` has several names: {several}", hint=hint)
    return images[0], next(iter(names), None)


def _refuse_used(host: str, images: Sequence[StoredImage]) -> None:
    for image in images:
        if image.containers:
            names = listed([f"`{name}`" for name in image.containers], _LISTED)
            what = f"the image `{shown(image)}` is used by {names} on `{host}`"
            raise Busy(what, hint=f"`jlr list {host} --all` shows their owners")


def shown(image: StoredImage) -> str:
    """Return the names of an image, else the beginning of its id."""
    return one_line(", ".join(image.names) or _digits(image.id)[:_SHOWN_DIGITS])
