"""`jlr pull`, `jlr push` and `jlr login`: the images of registries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_either
from jlremote.errors import Usage
from jlremote.times import utc

if TYPE_CHECKING:
    from jlremote.hosts.requests import EngineChoice


@command(
    "pull",
    examples=(
        "jlr pull dgx nvcr.io/nvidia/pytorch:24.05-py3",
        "jlr pull hpc docker://me/torch --image-folder /scratch/me",
    ),
)
@shared.host_argument
@click.argument("image")
@click.option("--image-folder", metavar="FOLDER", help=shared.IMAGE_FOLDER)
@shared.image_json_option
@shared.engine_options
@click.pass_obj
def pull(invocation: Invocation, host: str, image: str, engine: EngineChoice) -> None:
    """Pull an image on a host; the default tag is `latest`, and docker://NAME is for Apptainer.

    The host pulls: nothing passes through this machine, and a broken connection does not stop it.
    Ctrl-C does. A key that `jlr login` keeps for the registry is on the host until the pull ends,
    in a folder that only you can read.
    """
    from jlremote.cli.screen.reports import image_in_short
    from jlremote.images.pull import pull as pull_image

    found = pull_image(host, image, invocation.context(), engine)
    facts = {"image": image, "id": found.id, "created": utc(found.created), "size": found.size}
    answer_either(image_in_short((image,), found.id, found.size), facts)


@command(
    "push",
    examples=(
        "jlr push dgx nvcr.io/my-space/torch:week3",
        "jlr push dgx registry.lab.org:5000/me/torch",
    ),
)
@shared.host_argument
@click.argument("image")
@shared.image_json_option
@shared.engine_options
@click.pass_obj
def push(invocation: Invocation, host: str, image: str, engine: EngineChoice) -> None:
    """Push an image of a host to the registry in its name.

    `jlr build HOST FOLDER -t NAME` and `jlr save SESSION NAME` name images.
    """
    from jlremote.images.pull import push as push_image

    push_image(host, image, invocation.context(), engine)
    answer_either(f"pushed {image}", {"host": host, "image": image})


@command(
    "login",
    examples=(
        "jlr login dgx                          # NVIDIA's registry; asks for the API key",
        "jlr login dgx registry.lab.org:5000 --username me",
        "jlr login dgx nvcr.io --password-stdin < ngc.key",
        (
            "aws ecr get-login-password | jlr login dgx 0123.dkr.ecr.us-east-1.amazonaws.com "
            "--username AWS --password-stdin"
        ),
        "jlr login dgx --keep                   # keep it on the host, as `docker login` does",
        "jlr login dgx --forget",
    ),
)
@shared.host_argument
@click.argument("registry", default="nvcr.io")
@click.option(
    "--username", metavar="NAME", help="User at the registry. Default for nvcr.io: `$oauthtoken`."
)
@click.option("--password-stdin", is_flag=True, help="Read the password or API key from stdin.")
@click.option("--keep", is_flag=True, help="Keep the key on the host, in the engine's settings.")
@click.option("--forget", is_flag=True, help="Forget the key, here and on the host.")
@shared.json_option("Print a JSON object.")
@shared.engine_options
@click.pass_obj
def login(
    invocation: Invocation,
    host: str,
    registry: str,
    username: str | None,
    password_stdin: bool,
    keep: bool,
    forget: bool,
    engine: EngineChoice,
) -> None:
    """Let a host pull from a registry and push to it with your key. REGISTRY defaults to nvcr.io.

    The key is asked for without echo and tested from the host. It stays in this machine's keychain
    and is sent to that host only, when `jlr pull`, `push`, `build` or `start` needs it: into a
    folder that only you can read, which is removed when the command ends. It is in no argument,
    environment or log.
    """
    from jlremote.images import login as workflow

    if forget and (keep or password_stdin):
        raise Usage("`--forget` goes with neither `--keep` nor `--password-stdin`")
    context = invocation.context()
    if forget:
        places = workflow.log_out(host, registry, context, engine)
        where = " and ".join(places)
        text = (
            f"forgot the key of {registry} for {host}, which was kept in {where}"
            if places
            else f"no key of {registry} is kept for {host}"
        )
        facts = {"host": host, "registry": registry, "forgotten": places}
        answer_either(text, facts)
        return
    key = sys.stdin.read().rstrip("\r\n") if password_stdin else None
    request = workflow.LoginRequest(host, registry, username, key, keep, engine)
    report = workflow.log_in(request, context)
    text = f"{report.registry} accepts the key of {report.user}; it is kept in {report.kept}"
    if not report.accepted:
        text = (
            f"the key of {report.user} at {report.registry} is kept in {report.kept}; "
            "whether it is right shows at the first pull"
        )
    answer_either(text, vars(report))
