"""`jlr pull`, `jlr push` and `jlr login`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.options.engine import engine_options
from jlremote.cli.screen.image_words import in_short
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.workflow.host.requests import EngineChoice


@command(
    "pull",
    examples=(
        "jlr pull dgx nvcr.io/nvidia/pytorch:24.05-py3",
        "jlr pull dgx me/torch --json",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.argument("image")
@click.option("--json", "as_json", is_flag=True, help="Print the image as one JSON object.")
@engine_options
@click.pass_obj
def pull(
    invocation: Invocation, host: str, image: str, engine: EngineChoice, as_json: bool
) -> None:
    """Pull an image on a host; without a tag that is `latest`.

    The host pulls, so nothing passes through this machine, and it goes on when the connection
    breaks. Ctrl-C ends it. A key that `jlr login` has kept for the registry goes along in a folder
    that only you can read and that is gone when the pull ends.
    """
    from jlremote.workflow.images.registry import pull as pull_image

    found = pull_image(host, image, invocation.context(silent=as_json), engine)
    if as_json:
        answer_json({"image": image, "id": found.id, "created": found.created, "size": found.size})
    else:
        answer(in_short((image,), found.id, found.size))


@command(
    "push",
    examples=(
        "jlr push dgx nvcr.io/my-space/torch:week3",
        "jlr push dgx registry.lab.org:5000/me/torch",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.argument("image")
@engine_options
@click.pass_obj
def push(invocation: Invocation, host: str, image: str, engine: EngineChoice) -> None:
    """Push an image of a host to the registry that its name begins with.

    `jlr build HOST FOLDER -t NAME` and `jlr save SESSION NAME` give an image such a name.
    """
    from jlremote.workflow.images.registry import push as push_image

    push_image(host, image, invocation.context(), engine)


@command(
    "login",
    examples=(
        "jlr login dgx                          # NVIDIA's registry; asks for the API key",
        "jlr login dgx registry.lab.org:5000 --username me",
        "jlr login dgx nvcr.io --password-stdin    # < ngc.key",
        "jlr login dgx --keep                   # leave it there, as `docker login` does",
        "jlr login dgx --forget",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.argument("registry", default="nvcr.io")
@click.option("--username", metavar="NAME", help="Default for nvcr.io: `$oauthtoken`, literally.")
@click.option("--password-stdin", is_flag=True, help="Read the password or API key from stdin.")
@click.option(
    "--keep", is_flag=True, help="Leave the key on the host, in the engine's settings there."
)
@click.option("--forget", is_flag=True, help="Forget the key, here and on the host.")
@engine_options
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
    """Let a host pull from a registry, and push to it, with your key. REGISTRY defaults to nvcr.io.

    The key is asked for without echo and tried from the host. It is kept in this machine's keychain
    and goes to that host only, each time that `jlr pull`, `push`, `build` or `start` needs it
    there: into a folder that only you can read, removed when the command ends. It is in no
    argument, environment or log.
    """
    from jlremote.workflow.images import login as workflow

    if forget and (keep or password_stdin):
        raise Usage("`--forget` goes with neither `--keep` nor `--password-stdin`")
    context = invocation.context()
    if forget:
        known = workflow.log_out(host, registry, context, engine)
        answer(f"forgotten: {registry} on {host}" if known else f"no key of {registry} was here")
        return
    key = sys.stdin.read().rstrip("\r\n") if password_stdin else None
    request = workflow.LoginRequest(host, registry, username, key, keep, engine)
    report = workflow.log_in(request, context)
    answer(f"{report.registry} takes the key of {report.user}; it is kept in {report.kept}")
