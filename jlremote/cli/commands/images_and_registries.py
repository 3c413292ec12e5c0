"""`jlr image`: images of a host and the registries that it uses."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.options.creation import with_value
from jlremote.cli.screen import reports
from jlremote.cli.screen.terminal import answer_either, as_json
from jlremote.errors import Usage
from jlremote.times import utc

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import EngineChoice
    from jlremote.images.removal import RemovalReport


@command("image list", json="Print a JSON array.")
@shared.default_host_argument
@option("--all every", "Include untagged (dangling) images, left by builds.")
@shared.engine_options
def images(context: Context, host: str, engine: EngineChoice, every: bool) -> None:
    """List the images on a host, one per line, the latest first.

    AGE is the time since the image was built. SIZE includes what it shares with other images.
    Default of HOST: the host of the settings, else that of the latest session.

    Examples:
        jlr image list dgx
        jlr image list dgx --json | jq -r '.[] | select(.size > 2e10) | .id'
    """
    from jlremote.images import save as workflow

    listed = workflow.images(host, context, every=every, engine=engine)
    none = f"no images on {host}; `jlr image pull --help` says how to pull one"
    reports.show_reports(listed, reports.IMAGES, context, none=none)


def _secret(text: str) -> tuple[str, Path]:
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    name, source = parts.get("id", ""), parts.get("src") or parts.get("source")
    if not re.fullmatch(r"[\w.-]*\w", name, re.ASCII) or not source or len(parts) > 2:
        raise Usage(f"`--secret {text}` is not understood", hint="write `id=NAME,src=FILE`")
    return name, Path(source).expanduser()


@command("image build", json="Print the image as a JSON object.")
@shared.host_argument
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@option("--on-host DIR", "Build from this folder of the host; nothing is sent.")
@option("-t --tag tags NAME[:TAG]", "The image's name.", multiple=True)
@option(
    "-f --file dockerfile FILE",
    "The Dockerfile, anywhere on this machine. Default: FOLDER/Dockerfile.",
    type=click.Path(path_type=Path),
)
@option(
    "--build-arg arguments NAME[=VALUE]",
    "The value of an ARG, by default this machine's variable. Not for secrets: the image keeps it.",
    type=lambda item: with_value(item, "`--build-arg`"),
    multiple=True,
)
@option("--no-cache", "Run each step anew.")
@option("--target STAGE", "Build this stage of the Dockerfile.")
@option("--platform PLATFORM", "Build for another platform: linux/arm64.")
@option(
    "--secret secrets id=NAME,src=FILE",
    "A file of this machine that `RUN --mount=type=secret,id=NAME` reads, and no image keeps. "
    "Docker needs BuildKit for it.",
    type=_secret,
    multiple=True,
)
@shared.engine_options
def build(context: Context, /, **options: Any) -> None:
    """Build an image on a host from a local folder.

    FOLDER is sent over the connection, without the files that .dockerignore excludes; with
    --on-host the folder is the host's, and so is the Dockerfile. Once all is sent, a broken
    connection does not stop the build; Ctrl-C does. Secrets, and a registry's key that `jlr image
    login` keeps, are on the host for the time of the build, readable by you only.

    Examples:
        jlr image build dgx . -t me/torch
        jlr image build dgx ~/proj -t me/proj:1.2 -t me/proj:latest -f ~/proj/gpu.Dockerfile
        jlr image build dgx . -t me/torch --build-arg BASE=nvcr.io/nvidia/pytorch:24.05-py3
        jlr image build dgx --on-host /raid/me/proj -t me/proj
        jlr image build dgx . -t me/torch --secret id=pip,src=~/.pip.conf --target slim --no-cache
    """
    if (options["folder"] is None) == (options["on_host"] is None):
        why = "one folder is needed: FOLDER of this machine, or `--on-host DIR`"
        raise Usage(why, hint="`.` is the current folder")
    from jlremote.images import build as workflow

    request = workflow.BuildRequest(**options | {"secrets": dict(options["secrets"])})
    report = workflow.build(request, context)
    short = reports.image_in_short(report.tags, report.id, report.size)
    answer_either(short, vars(report))


@command("image save", json="Print the image as a JSON object.")
@click.argument("session", shell_complete=candidates.sessions)
@click.argument("image")
def save(context: Context, session: str, image: str) -> None:
    """Save a session's container as an image, with everything that was installed in it.

    Its processes are paused meanwhile. Volumes and folders of the host are not in the image; they
    are listed.

    Examples:
        jlr image save cont1 me/torch-with-keras
        jlr image save dgx/cont1 nvcr.io/my-space/torch:week3    # then: jlr image push dgx …
    """
    from jlremote.images import save as workflow

    report = workflow.save(session, image, context)
    variables = "the image contains these variables with their values"
    for what, names in (("not in the image", report.outside), (variables, report.variables)):
        if names:
            context.progress.note(f"{what}: {', '.join(names)}")
    short = reports.image_in_short((report.image,), report.id, report.size)
    answer_either(short, vars(report))


@command("image rm", json="Print a JSON object.")
@shared.named_host_argument
@click.argument("names", nargs=-1, required=True, metavar="IMAGE...")
@shared.yes_option
@shared.engine_options
def rmi(
    context: Context, host: str, names: tuple[str, ...], engine: EngineChoice, yes: bool
) -> None:
    """Remove images from a host, by name or id.

    An image with another name loses only the one that is given. An image that a container uses
    stays, also if that container is stopped. On a terminal jlr says what goes, and asks.

    Examples:
        jlr image rm dgx me/torch:week1 me/torch:week2 --yes
    """
    from jlremote.images.removal import remove

    report = remove(host, names, context, engine, yes=yes)
    answer_either(_removal_in_words(report), report.to_json())


@command("image prune", json="Print a JSON object.")
@shared.named_host_argument
@shared.yes_option
@shared.engine_options
def prune(context: Context, host: str, engine: EngineChoice, yes: bool) -> None:
    """Remove untagged (dangling) images from a host.

    Builds and pulls leave such images behind when they give their name to a new one. An image that
    a container uses stays. Unused networks of sessions go, too. On a terminal jlr says what goes,
    and asks; `jlr image list HOST --all` shows these images.

    Examples:
        jlr image prune dgx --yes --json | jq .deleted
    """
    from jlremote.images import removal

    report = removal.prune(host, context, engine, yes=yes)
    if not report.deleted and not report.networks and not as_json():
        context.progress.note(f"{host} has no untagged images that no container uses")
        return
    answer_either(_removal_in_words(report), report.to_json())


def _removal_in_words(report: RemovalReport) -> str:
    from jlremote.images.removal import shown

    lines = [f"deleted {shown(image)}" for image in report.deleted]
    lines += [f"removed the name {name}; its image stays" for name in report.untagged]
    lines += [f"removed the network {name}" for name in report.networks]
    return "\n".join(lines)


@command("image pull", json="Print the image as a JSON object.")
@shared.host_argument
@click.argument("image")
@shared.engine_options
def pull(context: Context, host: str, image: str, engine: EngineChoice) -> None:
    """Pull an image on a host; the default tag is `latest`, and docker://NAME is for Apptainer.

    The host pulls: nothing passes through this machine, and a broken connection does not stop it.
    Ctrl-C does. A key that `jlr image login` keeps for the registry is on the host until the pull
    ends, in a folder that only you can read.

    Examples:
        jlr image pull dgx nvcr.io/nvidia/pytorch:24.05-py3
    """
    from jlremote.images import pull as workflow

    pulled = workflow.pull(host, image, context, engine)
    facts = {"image": image, "id": pulled.id, "created": utc(pulled.created), "size": pulled.size}
    answer_either(reports.image_in_short((image,), pulled.id, pulled.size), facts)


@command("image push", json="Print the image as a JSON object.")
@shared.host_argument
@click.argument("image")
@shared.engine_options
def push(context: Context, host: str, image: str, engine: EngineChoice) -> None:
    """Push an image of a host to the registry in its name.

    `jlr image build HOST FOLDER -t NAME` and `jlr image save SESSION NAME` name images.

    Examples:
        jlr image push dgx nvcr.io/my-space/torch:week3
    """
    from jlremote.images import pull as workflow

    workflow.push(host, image, context, engine)
    answer_either(f"pushed {image}", {"host": host, "image": image})


@command("image login", json="Print a JSON object.")
@shared.host_argument
@click.argument("registry", default="nvcr.io")
@option("--username user NAME", "User at the registry. Default for nvcr.io: `$oauthtoken`.")
@option("--password-stdin", "Read the password or API key from stdin.")
@option("--keep", "Keep the key on the host, in the engine's settings.")
@option("--forget", "Forget the key, here and on the host.")
@shared.engine_options
def login(context: Context, /, *, password_stdin: bool, forget: bool, **options: Any) -> None:
    """Let a host pull from a registry and push to it with your key. REGISTRY defaults to nvcr.io.

    The key is asked for without echo and tested from the host. It stays in this machine's keychain
    and is sent to that host only, when an image is pulled, pushed or built: into a folder that only
    you can read, which is removed when the command ends. It is in no argument, environment or log.

    Examples:
        jlr image login dgx                          # NVIDIA's registry; asks for the API key
        jlr image login dgx registry.lab.org:5000 --username me
        jlr image login dgx nvcr.io --password-stdin < ngc.key
        jlr image login dgx --keep                   # keep it on the host, as `docker login` does
        jlr image login dgx --forget
    """
    from jlremote.images import login as workflow

    if forget and (options["keep"] or password_stdin):
        raise Usage("`--forget` goes with neither `--keep` nor `--password-stdin`")
    if forget:
        host, registry = options["host"], options["registry"]
        places = workflow.log_out(host, registry, context, options["engine"])
        text = f"no key of {registry} is kept for {host}"
        if places:
            kept = " and ".join(places)
            text = f"forgot the key of {registry} for {host}, which was kept in {kept}"
        answer_either(text, {"host": host, "registry": registry, "forgotten": places})
        return
    key = sys.stdin.read().rstrip("\r\n") if password_stdin else None
    report = workflow.log_in(workflow.LoginRequest(**options, key=key), context)
    of, kept = f"the key of {report.user}", f"is kept in {report.kept}"
    text = f"{report.registry} accepts {of}; it {kept}"
    if not report.accepted:
        text = f"{of} at {report.registry} {kept}; the first pull tests it"
    answer_either(text, vars(report))
