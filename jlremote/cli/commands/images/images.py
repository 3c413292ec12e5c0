"""`jlr images`, `jlr build` and `jlr save`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options.shared import (
    engine_options,
    host_argument,
    image_json_option,
    json_option,
)
from jlremote.cli.screen.terminal import answer_either

if TYPE_CHECKING:
    from jlremote.workflow.host.requests import EngineChoice


@command(
    "images",
    examples=(
        "jlr images dgx",
        "jlr images dgx --all",
        "jlr images dgx --json | jq -r '.[] | select(.size > 2e10) | .id'",
    ),
)
@host_argument
@click.option("--all", "every", is_flag=True, help="Include images without a name, left by builds.")
@json_option("Print a JSON array.")
@engine_options
@click.pass_obj
def images(
    invocation: Invocation, host: str, engine: EngineChoice, every: bool, as_json: bool
) -> None:
    """List the images on a host, one per line, the latest first.

    AGE is the time since the image was built. SIZE includes what it shares with other images.
    """
    from jlremote.cli.screen import reports, tables
    from jlremote.workflow.images.images import images as found_images

    context = invocation.context(silent=as_json)
    found = found_images(host, context, every=every, engine=engine)
    none = f"no images on {host}; `jlr pull {host} IMAGE` pulls one"
    tables.show_reports(found, reports.IMAGES, context, as_json=as_json, none=none)


@command(
    "build",
    examples=(
        "jlr build dgx . -t me/torch",
        "jlr build dgx ~/proj -t me/proj:1.2 -t me/proj:latest -f ~/proj/gpu.Dockerfile",
        "jlr build dgx . -t me/torch --build-arg BASE=nvcr.io/nvidia/pytorch:24.05-py3",
    ),
)
@host_argument
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-t", "--tag", "tags", multiple=True, metavar="NAME[:TAG]", help="The image's name.")
@click.option(
    "-f",
    "--file",
    "dockerfile",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The Dockerfile, anywhere on this machine. Default: FOLDER/Dockerfile.",
)
@click.option(
    "--build-arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of an ARG. Not for secrets: it stays readable in the image.",
)
@image_json_option
@engine_options
@click.pass_obj
def build(
    invocation: Invocation,
    host: str,
    folder: Path,
    tags: tuple[str, ...],
    dockerfile: Path | None,
    arguments: tuple[str, ...],
    engine: EngineChoice,
    as_json: bool,
) -> None:
    """Build an image on a host from a local folder.

    The folder is sent over the connection, without the files that .dockerignore excludes. A
    registry's key that `jlr login` keeps is on the host for the time of the build.
    """
    from jlremote.cli.screen.reports import image_in_short
    from jlremote.workflow.images.build import BuildRequest
    from jlremote.workflow.images.build import build as build_image

    request = BuildRequest(host, folder, tags, dockerfile, arguments, engine)
    report = build_image(request, invocation.context(silent=as_json))
    short = image_in_short(report.tags, report.id, report.size)
    answer_either(short, report.to_json(), as_json=as_json)


@command(
    "save",
    examples=(
        "jlr save cont1 me/torch-with-keras",
        "jlr save dgx/cont1 nvcr.io/my-space/torch:week3    # then: jlr push dgx …",
    ),
)
@click.argument("session", shell_complete=candidates.sessions)
@click.argument("image")
@image_json_option
@click.pass_obj
def save(invocation: Invocation, session: str, image: str, as_json: bool) -> None:
    """Save a session's container as an image, with everything that was installed in it.

    Its processes are paused meanwhile. Volumes and folders of the host are not in the image; they
    are listed.
    """
    from jlremote.cli.screen.reports import image_in_short
    from jlremote.workflow.images.images import save as save_image

    context = invocation.context(silent=as_json)
    report = save_image(session, image, context)
    if report.outside:
        context.progress.note(f"not in the image: {', '.join(report.outside)}")
    if report.variables:
        names = ", ".join(report.variables)
        context.progress.note(f"the image contains these variables with their values: {names}")
    short = image_in_short((report.image,), report.id, report.size)
    answer_either(short, report.to_json(), as_json=as_json)
