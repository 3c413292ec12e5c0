"""`jlr images`, `jlr build` and `jlr save`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.options.engine import engine_options
from jlremote.cli.screen.image_words import in_short, short_id
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.text import size_in_words

if TYPE_CHECKING:
    from jlremote.workflow.host.requests import EngineChoice

_HEADINGS = ("REPOSITORY", "TAG", "ID", "AGE", "SIZE")


@command(
    "images",
    examples=(
        "jlr images dgx",
        "jlr images dgx --all",
        "jlr images dgx --json | jq -r '.[] | select(.size > 2e10) | .id'",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.option(
    "--all", "every", is_flag=True, help="Also images without a name, as builds leave them behind."
)
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
@engine_options
@click.pass_obj
def images(
    invocation: Invocation, host: str, engine: EngineChoice, every: bool, as_json: bool
) -> None:
    """List the images on a host, a line each, the latest first.

    AGE is the time since an image was built, SIZE what it takes with all that it shares with
    others.
    """
    from jlremote import times
    from jlremote.cli.screen import tables
    from jlremote.workflow.images.images import images as found_images

    context = invocation.context(silent=as_json)
    found = found_images(host, context, every=every, engine=engine)
    if as_json:
        answer_json([image.to_json() for image in found])
    elif found:
        rows = [
            (
                image.repository or "<none>",
                image.tag or "<none>",
                short_id(image.id),
                times.ago(image.created),
                size_in_words(image.size),
            )
            for image in found
        ]
        tables.show_table(_HEADINGS, rows)
    else:
        context.progress.note(f"no images on {host}; `jlr pull {host} IMAGE` brings one")


@command(
    "build",
    examples=(
        "jlr build dgx . -t me/torch",
        "jlr build dgx ~/proj -t me/proj:1.2 -t me/proj:latest -f ~/proj/gpu.Dockerfile",
        "jlr build dgx . -t me/torch --build-arg BASE=nvcr.io/nvidia/pytorch:24.05-py3",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-t", "--tag", "tags", multiple=True, metavar="NAME[:TAG]", help="The image's name.")
@click.option(
    "-f",
    "--file",
    "dockerfile",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The Dockerfile, if it is not FOLDER/Dockerfile; it may be anywhere.",
)
@click.option(
    "--build-arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A value for an ARG. No secrets: it stays readable in the image.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the image as one JSON object.")
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
    """Build an image on a host, from a folder on this machine.

    The folder goes there over the connection, without what its .dockerignore leaves out. The key of
    a registry that `jlr login` has kept goes along for as long as the build lasts.
    """
    from jlremote.workflow.images.build import BuildRequest
    from jlremote.workflow.images.build import build as build_image

    request = BuildRequest(host, folder, tags, dockerfile, arguments, engine)
    report = build_image(request, invocation.context(silent=as_json))
    if as_json:
        answer_json(report.to_json())
    else:
        answer(in_short(report.tags, report.id, report.size))


@command(
    "save",
    examples=(
        "jlr save cont1 me/torch-with-keras",
        "jlr save dgx/cont1 nvcr.io/my-space/torch:week3    # then: jlr push dgx …",
    ),
)
@click.argument("session", shell_complete=candidates.sessions)
@click.argument("image")
@click.option("--json", "as_json", is_flag=True, help="Print the image as one JSON object.")
@click.pass_obj
def save(invocation: Invocation, session: str, image: str, as_json: bool) -> None:
    """Save a session's container as an image, with all that was installed in it.

    What runs in it stands still meanwhile, and then goes on. What lies in volumes and in folders of
    the host is not in the image; it is told what that is.
    """
    from jlremote.workflow.images.images import save as save_image

    context = invocation.context(silent=as_json)
    report = save_image(session, image, context)
    if report.outside:
        context.progress.note(f"not in the image: {', '.join(report.outside)}")
    if report.variables:
        names = ", ".join(report.variables)
        context.progress.note(f"readable in the image, with their values: the variables {names}")
    if as_json:
        answer_json(report.to_json())
    else:
        answer(in_short((report.image,), report.id, report.size))
