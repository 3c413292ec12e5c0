"""`jlr images`, `build`, `save`, `rmi` and `prune`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_either, as_json
from jlremote.errors import Usage
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.text import size_in_words

if TYPE_CHECKING:
    from pathlib import Path

    from jlremote.hosts.requests import EngineChoice
    from jlremote.images.removal import RemovalReport


@command(
    "images",
    examples=(
        "jlr images dgx",
        "jlr images dgx --all",
        "jlr images hpc --runtime apptainer",
        "jlr images dgx --json | jq -r '.[] | select(.size > 2e10) | .id'",
    ),
)
@shared.host_argument
@click.option("--all", "every", is_flag=True, help="Include images without a name, left by builds.")
@click.option("--image-folder", metavar="FOLDER", help=shared.IMAGE_FOLDER)
@shared.json_option("Print a JSON array.")
@shared.engine_options
@click.pass_obj
def images(invocation: Invocation, host: str, engine: EngineChoice, every: bool) -> None:
    """List the images on a host, one per line, the latest first.

    AGE is the time since the image was built. SIZE includes what it shares with other images.
    """
    from jlremote.cli.screen import reports, tables
    from jlremote.images.save import images as found_images

    context = invocation.context()
    found = found_images(host, context, every=every, engine=engine)
    chosen = "" if engine.runtime == "auto" else f" --runtime {engine.runtime}"
    image = f"{'docker://' if engine.runtime in IMAGE_RUNTIMES else ''}IMAGE"
    none = f"no images on {host}; `jlr pull {host} {image}{chosen}` pulls one"
    tables.show_reports(found, reports.IMAGES, context, none=none)


@command(
    "build",
    examples=(
        "jlr build dgx . -t me/torch",
        "jlr build dgx ~/proj -t me/proj:1.2 -t me/proj:latest -f ~/proj/gpu.Dockerfile",
        "jlr build dgx . -t me/torch --build-arg BASE=nvcr.io/nvidia/pytorch:24.05-py3",
        "jlr build dgx --on-host /raid/me/proj -t me/proj",
        "jlr build dgx . -t me/torch --secret id=pip,src=~/.pip.conf --target slim --no-cache",
    ),
)
@shared.host_argument
@click.argument("folder", required=False, type=click.Path())
@click.option(
    "--on-host", metavar="DIR", help="Build from this folder of the host; nothing is sent."
)
@click.option("-t", "--tag", "tags", multiple=True, metavar="NAME[:TAG]", help="The image's name.")
@click.option(
    "-f",
    "--file",
    "dockerfile",
    type=click.Path(),
    metavar="FILE",
    help="The Dockerfile, anywhere on this machine. Default: FOLDER/Dockerfile.",
)
@click.option(
    "--build-arg",
    "arguments",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="The value of an ARG, by default this machine's variable. Not for secrets: it stays "
    "readable in the image.",
)
@click.option("--no-cache", is_flag=True, help="Run each step anew.")
@click.option("--target", metavar="STAGE", help="Build this stage of the Dockerfile.")
@click.option("--platform", metavar="PLATFORM", help="Build for another platform: linux/arm64.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="id=NAME,src=FILE",
    help="A file of this machine that `RUN --mount=type=secret,id=NAME` reads, and no image keeps. "
    "Docker needs BuildKit for it.",
)
@shared.image_json_option
@shared.engine_options
@click.pass_obj
def build(
    invocation: Invocation,
    /,
    *,
    folder: str | None,
    on_host: str | None,
    dockerfile: str | None,
    arguments: tuple[str, ...],
    secrets: tuple[str, ...],
    **options: Any,
) -> None:
    """Build an image on a host from a local folder.

    FOLDER is sent over the connection, without the files that .dockerignore excludes; with
    --on-host the folder is the host's, and so is the Dockerfile. Once all is sent, a broken
    connection does not stop the build; Ctrl-C does. A registry's key that `jlr login` keeps, and
    secrets, are on the host for the time of the build, readable by you only.
    """
    if (folder is None) == (on_host is None):
        raise Usage(
            "one folder is needed: FOLDER of this machine, or `--on-host DIR`",
            hint="`jlr build HOST . -t NAME` sends this folder",
        )
    from pathlib import Path

    from jlremote.cli.options.creation import with_value
    from jlremote.cli.screen.reports import image_in_short
    from jlremote.images.build import BuildRequest
    from jlremote.images.build import build as build_image

    file = Path(dockerfile) if dockerfile is not None else None
    request = BuildRequest(
        folder=None if folder is None else Path(folder),
        on_host=on_host,
        dockerfile=file,
        arguments=tuple(with_value(item, "`--build-arg`") for item in arguments),
        secrets=dict(map(_secret, secrets)),
        **options,
    )
    report = build_image(request, invocation.context())
    short = image_in_short(report.tags, report.id, report.size)
    answer_either(short, report.to_json())


def _secret(text: str) -> tuple[str, Path]:
    """Return the name and the file of a secret, as docker takes them."""
    from pathlib import Path

    parts = dict(part.partition("=")[::2] for part in text.split(","))
    name, source = parts.get("id", ""), parts.get("src") or parts.get("source")
    if not re.fullmatch(r"[\w.-]*\w", name, re.ASCII) or not source or len(parts) > 2:
        raise Usage(f"`--secret {text}` is not understood", hint="write `id=NAME,src=FILE`")
    return name, Path(source).expanduser()


@command(
    "save",
    examples=(
        "jlr save cont1 me/torch-with-keras",
        "jlr save dgx/cont1 nvcr.io/my-space/torch:week3    # then: jlr push dgx …",
    ),
)
@click.argument("session", shell_complete=candidates.sessions)
@click.argument("image")
@shared.image_json_option
@click.pass_obj
def save(invocation: Invocation, session: str, image: str) -> None:
    """Save a session's container as an image, with everything that was installed in it.

    Its processes are paused meanwhile. Volumes and folders of the host are not in the image; they
    are listed.
    """
    from jlremote.cli.screen.reports import image_in_short
    from jlremote.images.save import save as save_image

    context = invocation.context()
    report = save_image(session, image, context)
    if report.outside:
        context.progress.note(f"not in the image: {', '.join(report.outside)}")
    if report.variables:
        names = ", ".join(report.variables)
        context.progress.note(f"the image contains these variables with their values: {names}")
    short = image_in_short((report.image,), report.id, report.size)
    answer_either(short, report.to_json())


@command(
    "rmi",
    examples=("jlr rmi dgx me/torch:week3", "jlr rmi dgx me/torch:week1 me/torch:week2 --yes"),
)
@shared.host_argument
@click.argument("names", nargs=-1, required=True, metavar="IMAGE...")
@shared.yes_option
@shared.json_option("Print a JSON object.")
@shared.engine_options
@click.pass_obj
def rmi(
    invocation: Invocation, host: str, names: tuple[str, ...], engine: EngineChoice, yes: bool
) -> None:
    """Remove images from a host, by name or id, and say how much space that frees.

    An image with another name loses only the one that is given. An image that a container uses
    stays, also if that container is stopped. On a terminal jlr says what goes, and asks.
    """
    from jlremote.images.removal import remove

    report = remove(host, names, invocation.context(), engine, yes=yes)
    answer_either(_removal_in_words(report), report.to_json())


@command("prune", examples=("jlr prune dgx", "jlr prune dgx --yes --json | jq .freed"))
@shared.host_argument
@shared.yes_option
@shared.json_option("Print a JSON object.")
@shared.engine_options
@click.pass_obj
def prune(invocation: Invocation, host: str, engine: EngineChoice, yes: bool) -> None:
    """Remove the images without a name from a host, and say how much space that frees.

    With them go networks of sessions whose container was removed without jlr.

    Builds and pulls leave them behind when they give their name to a new image. What a container
    uses stays. On a terminal jlr says what goes, and asks; `jlr images HOST --all` shows them.
    """
    from jlremote.images import removal

    context = invocation.context()
    report = removal.prune(host, context, engine, yes=yes)
    if not report.deleted and not report.networks and not as_json():
        context.progress.note(f"{host} has no images without a name that no container uses")
        return
    answer_either(_removal_in_words(report), report.to_json())


def _removal_in_words(report: RemovalReport) -> str:
    from jlremote.images.removal import shown

    lines = [f"deleted {shown(image)}" for image in report.deleted]
    lines += [f"removed the name {name}; its image stays" for name in report.untagged]
    lines += [f"removed the network {name}" for name in report.networks]
    lines += [f"freed {size_in_words(report.freed)}"] if report.deleted or report.untagged else []
    return "\n".join(lines)
