"""Which images a removal deletes, which containers hold them, and the bytes that it frees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jlremote.errors import Busy, NotFound, Usage
from jlremote.images import image_names
from jlremote.images.commands import each_inspected
from jlremote.place.host.contract import understood
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.text import listed, one_line
from jlremote.untrusted import document, number, whole_number

_USED = '{"image":{{json .Image}},"name":{{json .Name}}}'
_LISTED = 3
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class StoredImage:
    """An image on a host, with what it shares and what uses it."""

    id: str
    names: tuple[str, ...]  # none for an image that a build or a pull has left behind
    created: str  # when it was built, ISO 8601
    size: int  # bytes, with the layers that it shares with other images
    layers: tuple[str, ...]  # digests, the lowest first
    containers: tuple[str, ...] = ()  # names of the containers that use it, stopped ones too

    @property
    def digits(self) -> str:
        """The id without `sha256:`, which podman leaves out."""
        return self.id.removeprefix("sha256:")


def containers_script(engine: Engine) -> str:
    """Return the script that prints the image of each container, one JSON object a line."""
    inspect = engine("container", "inspect", "--format", _USED)
    return each_inspected(engine("container", "ls", "--all"), inspect)


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
            tuple(map(str, facts["layers"] or ())),
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
        those = [one for one in self.stored if one.digits.startswith(_digits(typed))]
        if not image_names.may_be_id(typed) or not those:
            raise NotFound(  # without a name that is like it, which would be deleted
                f"there is no image `{one_line(typed)}` on `{self.host}`",
                hint=f"`jlr images {self.host} --all` lists the images",
            )
        if len(those) > 1:
            raise Usage(f"{len(those)} images' ids on `{self.host}` begin with `{typed}`")
        (image,) = those
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
        those = [image for image in self.stored if image.id in self.chosen]
        return [image for image in those if len(self.chosen[image.id]) == len(image.names)]

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
    """Return whether a typed name is an image's own; podman's begin with `localhost/`."""
    return any(image_names.same(one, name) for one in (typed, f"{image_names.LOCAL}/{typed}"))


def shown(image: StoredImage) -> str:
    """Return the names of an image, else the beginning of its id."""
    return one_line(", ".join(image.names) or image.digits[:_SHOWN_DIGITS])


@dataclass(frozen=True)
class SharedLayers:
    """An image to delete, and the kept image that shares most of its layers."""

    image: StoredImage
    other: StoredImage | None
    layers: int  # how many they share

    @property
    def uncertain(self) -> bool:
        """Whether only the histories of the two tell the size of what they share."""
        return self.other is not None and 0 < self.layers < len(self.other.layers)


def sharing(stored: Sequence[StoredImage], gone: Sequence[StoredImage]) -> list[SharedLayers]:
    """Return what each image to delete shares with the kept ones and those deleted before it."""
    ids = {image.id for image in gone}
    others = [image for image in stored if image.id not in ids]
    found = []
    for image in gone:
        common = [(_common(image.layers, other.layers), other) for other in others]
        layers, nearest = max(common, key=lambda pair: pair[0], default=(0, None))
        found.append(SharedLayers(image, nearest if layers else None, layers))
        others.append(image)
    return found


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many values two sequences share from the beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def history_argv(engine: Engine, image_id: str) -> Argv:
    """Return the command that prints each step's moment, bytes and command, the last one first."""
    fields = (".CreatedAt", engine.kind.step_bytes, "json .CreatedBy")
    step = "\t".join(f"{{{{{field}}}}}" for field in fields)
    return engine("history", "--no-trunc", "--human=false", f"--format={step}", image_id)


@understood("the container engine")
def freed(found: SharedLayers, histories: Mapping[str, str]) -> int:
    """Return the bytes that only this image has.

    The histories by id are those of an uncertain pair; engines do not tell the sizes of layers, but
    two images with a common layer have had the same steps up to it.
    """
    if found.other is None:
        return found.image.size
    if found.layers == len(found.image.layers):
        return 0
    if not found.uncertain:
        return found.image.size - found.other.size
    own, other = (_steps(histories[one.id]) for one in (found.image, found.other))
    return sum(whole_number(step.split("\t")[1]) for step in own[_common(own, other) :])


def _steps(history: str) -> list[str]:
    """Return the steps of a history, the first one first."""
    return history.splitlines()[::-1]
