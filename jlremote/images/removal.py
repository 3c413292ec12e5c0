"""`jlr image rm` and `jlr image prune`: remove images from a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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

    @property
    def digits(self) -> str:
        """The id without `sha256:`, which podman leaves out."""
        return self.id.removeprefix("sha256:")


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
    """Remove names of images, and each image that has no other name.

    Raises:
        NotFound: the host has no such image; then none is removed.
        Busy: a container uses one; then none is removed.
        JlrError: the answer was no, or the engine refuses.
    """
    for typed in images:
        image_names.check(typed)
    link, engine = _engine(host, context, wanted)
    selection = Selection(host, _stored(link, engine, context))
    for typed in images:
        selection.add(typed)
    selection.refuse_used()
    deleted = selection.deleted
    if deleted:  # a name without its image is easily given again
        confirm(_planned(host, deleted), context, yes=yes)
    argv = engine("rmi", "--", *selection.references)
    gone = _removed(link, engine, argv, deleted, context)
    whole = {name for image in gone for name in image.names}
    names = (name for chosen in selection.chosen.values() for name in chosen)
    untagged = tuple(name for name in names if name not in whole)
    return RemovalReport(host, tuple(gone), untagged)


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
    dangling = _ids(run_script(link, command_line(listing)).stdout)
    deleted = [image for image in stored if image.digits in dangling and not image.containers]
    if not deleted:
        return RemovalReport(host, (), (), gone_networks)
    confirm(_planned(host, deleted), context, yes=yes)
    # By the engine's own choice: an image that was given a name meanwhile stays.
    gone = _removed(link, engine, engine("image", "prune", "--force"), deleted, context)
    return RemovalReport(host, tuple(gone), (), gone_networks)


def _engine(host: str, context: Context, wanted: EngineChoice) -> tuple[Link, Engine]:
    if wanted.runtime in IMAGE_RUNTIMES:
        raise Usage(
            f"images of `{wanted.runtime}` are files",
            hint=f"`jlr shell {host_word(host)} -- rm FILE` deletes one",
        )
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
        gone = [image for image in deleted if image.digits not in left]
        if done["remove"].status != 0:
            if gone:
                context.progress.note(f"deleted {', '.join(map(shown, gone))}")
            raise engine_error(engine, done["remove"])
    return gone


def _ids(printed: str) -> set[str]:
    """Return the ids of a list; podman prints some with `sha256:` and some without."""
    return {line.removeprefix("sha256:") for line in printed.split()}


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
    return image_id.removeprefix("sha256:")


@dataclass
class Selection:
    """The names to remove, by image. An image that loses its last name is deleted."""

    host: str
    stored: Sequence[StoredImage]
    chosen: dict[str, list[str]] = field(default_factory=dict)  # by id

    def add(self, typed: str) -> None:
        """Choose an image by a name, or by an id if it has no more than one name.

        Raises:
            NotFound: the host has no such image.
            Usage: several images begin with the id, or the image has several names.
        """
        for image in self.stored:
            for name in image.names:
                if _means(typed, name):
                    self._take(image, name)
                    return
        self._take_id(typed)

    def _take_id(self, typed: str) -> None:
        images = [one for one in self.stored if one.digits.startswith(_digits(typed))]
        if not image_names.may_be_id(typed) or not images:
            raise NotFound(  # without a name that is like it, which would be deleted
                f"there is no image `{one_line(typed)}` on `{self.host}`",
                hint=f"`jlr image list {self.host} --all` lists the images",
            )
        if len(images) > 1:
            raise Usage(f"`{typed}` stands for {len(images)} images of `{self.host}`")
        (image,) = images
        if len(image.names) > 1:
            names = ", ".join(f"`{name}`" for name in image.names)
            raise Usage(
                f"the image `{typed}` has several names: {names}", hint="name those to remove"
            )
        for name in image.names or (None,):
            self._take(image, name)

    def _take(self, image: StoredImage, name: str | None) -> None:
        names = self.chosen.setdefault(image.id, [])
        if name is not None and name not in names:
            names.append(name)

    @property
    def deleted(self) -> list[StoredImage]:
        """The images that lose their last name."""
        chosen = [image for image in self.stored if image.id in self.chosen]
        return [image for image in chosen if len(self.chosen[image.id]) == len(image.names)]

    @property
    def references(self) -> list[str]:
        """The arguments of `rmi`: names, and ids of images without a name."""
        return [each for image_id, names in self.chosen.items() for each in names or [image_id]]

    def refuse_used(self) -> None:
        """Refuse an image that a container uses, also a stopped one (`Busy`)."""
        for image in self.deleted:
            if image.containers:
                names = [f"`{name}`" for name in image.containers]
                raise Busy(
                    f"the image `{shown(image)}` is used by {listed(names, _LISTED)} on "
                    f"`{self.host}`",
                    hint=f"`jlr list {self.host} --all` shows their owners",
                )


def _means(typed: str, name: str) -> bool:
    return any(image_names.same(one, name) for one in (typed, f"{image_names.LOCAL}/{typed}"))


def shown(image: StoredImage) -> str:
    """Return the names of an image, else the beginning of its id."""
    return one_line(", ".join(image.names) or image.digits[:_SHOWN_DIGITS])
