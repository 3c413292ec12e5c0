"""The engine's command lines for images, and readers of their output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jlremote.place.host.contract import Host, run_script, understood
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.runtime import CREATOR_LABEL
from jlremote.text import one_line
from jlremote.times import utc
from jlremote.untrusted import document, number

_FACTS = (
    '{"id":{{json .ID}},"names":{{json .RepoTags}},"created":{{json .Created}},'
    '"size":{{json .Size}}}'
)
_NO_TAG = "<none>:<none>"
_OUR_LABELS = "org.jlremote."


@dataclass(frozen=True)
class Image:
    """An image on a host, under one of its names."""

    id: str  # `sha256:` and 64 digits
    repository: str | None  # `nvcr.io/nvidia/pytorch`; `None` for an image without a name
    tag: str | None  # `None` for an image without a name
    created: str  # when it was built, ISO 8601
    size: int  # bytes, with the layers that it shares with other images

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"created": utc(self.created)}


def list_script(engine: Engine, *, every: bool) -> str:
    """Return the script that prints the facts of all images, one JSON object a line.

    `docker images` prints sizes and ages only in words. With `every`, intermediate images are
    listed as images without a name.
    """
    listing = engine("image", "ls", *(("--all",) if every else ()))
    return each_inspected(listing, engine("image", "inspect", "--format", _FACTS))


def each_inspected(listing: Argv, inspect: Argv) -> str:
    """Return the script that inspects each listed object, again if one was removed meanwhile."""
    ids = command_line((*listing, "--quiet", "--no-trunc"))
    return f"""\
for try in 1 2 3; do
  ids=$({ids}) || exit
  [ -n "$ids" ] || exit 0
  found=$({command_line(inspect)} $(printf "%s\\n" "$ids" | sort -u)) && break
done
status=$?
[ -z "$found" ] || printf '%s\\n' "$found"
exit "$status"
"""


@understood("the container engine")
def read_list(printed: str, *, every: bool) -> list[Image]:
    """Return the images, the latest first; without `every` only those with a name."""
    images = [image for line in printed.splitlines() for image in _named(document(line))]
    wanted = [image for image in images if every or image.repository is not None]
    return sorted(wanted, key=lambda image: image.created, reverse=True)


def _named(facts: Mapping[str, Any]) -> Iterator[Image]:
    created, size = str(facts["created"]), round(number(facts["size"]))
    for name in [name for name in facts["names"] or () if name != _NO_TAG] or [None]:
        repository, _, tag = (name or "").rpartition(":")
        yield Image(str(facts["id"]), repository or None, tag or None, created, size)


def inspect_image_argv(engine: Engine, image: str) -> Argv:
    """Return the command that inspects an image."""
    return engine("image", "inspect", "--", image)


@understood("the container engine")
def read_image(printed: str) -> Image:
    """Return the image of an `image inspect`, without its name."""
    (facts,) = document(printed)
    size = round(number(facts["Size"]))
    return Image(str(facts["Id"]), None, None, str(facts["Created"]), size)


def image_on(host: Host, engine: Engine, name: str) -> Image:
    """Return an image that is on a host."""
    return read_image(run_script(host, command_line(inspect_image_argv(engine, name))).stdout)


def commit_argv(
    engine: Engine,
    container: str,
    image: str,
    inspected: Mapping[str, Any],
    base: Mapping[str, Any],
    variables: Mapping[str, str],
) -> Argv:
    """Return the command that commits a container as an image, with variables.

    Of a container that jlr created the image gets back its own entrypoint, command and user, and
    loses jlr's labels, so that others can run it. `inspected` is the container's `inspect`, and
    `base` that of the image that it was created from.
    """
    labels = inspected["Config"].get("Labels") or {}
    changes: list[str] = []
    if labels.get(CREATOR_LABEL):
        config = base.get("Config") or {}
        entrypoint = config.get("Entrypoint")  # docker would read `[]` as the container's
        changes = [
            f"ENTRYPOINT {json.dumps(entrypoint) if entrypoint else engine.kind.no_entrypoint}",
            f"CMD {json.dumps(config.get('Cmd') or [])}",
            f"USER {config.get('User') or 'root'}",
            *(f'LABEL {label}=""' for label in labels if label.startswith(_OUR_LABELS)),
        ]
        for name, value in variables.items():
            quoted = json.dumps(value, ensure_ascii=False).replace("$", "\\$")
            changes.append(f"ENV {name}={quoted}")
    return engine("commit", *(f"--change={change}" for change in changes), container, image)


def with_folders(inspected: Mapping[str, Any], folders: Sequence[str]) -> dict[str, str]:
    """Return a container's PATH and PYTHONPATH with these folders in front."""
    given = dict(item.partition("=")[::2] for item in inspected["Config"].get("Env") or ())
    programs = [folder for folder in folders if folder.endswith("/bin")]
    packages = [folder for folder in folders if folder.endswith("/site-packages")]
    return {
        name: ":".join(dict.fromkeys((*found, *filter(None, given.get(name, "").split(":")))))
        for name, found in (("PATH", programs), ("PYTHONPATH", packages))
        if found
    }


def outside_image(inspected: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a container's mounts, each with its kind; an image of the container lacks them."""
    mounts = [f"{mount['Destination']} ({_source(mount)})" for mount in inspected["Mounts"]]
    memory = [f"{path} (memory)" for path in inspected["HostConfig"].get("Tmpfs") or {}]
    return tuple(one_line(text) for text in (*mounts, *memory))


def _source(mount: Mapping[str, Any]) -> str:
    if mount["Type"] == "volume":
        return f"volume {mount['Name']}"
    return str(mount.get("Source") or mount["Type"])


def added_variables(inspected: Mapping[str, Any], base: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a container's variables that its image has not."""
    had = set((base.get("Config") or {}).get("Env") or ())
    new = [text for text in inspected["Config"].get("Env") or () if text not in had]
    return tuple(one_line(text.partition("=")[0]) for text in new)
