"""`jlr cp`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_json
from jlremote.errors import Usage


@command(
    "cp",
    examples=(
        "jlr cp data.csv cont1:/data/          # into the session's container",
        "jlr cp -r cont1:runs .                # a folder, from where shells begin",
        "jlr cp 'cont1:runs/*.png' figures     # quoted, so it is expanded there",
        "jlr cp -r src dgx:~/src               # the host's own files",
        "jlr cp -r src cont1:src --json | jq .bytes",
    ),
)
@click.argument(
    "paths",
    metavar="SRC... DST",
    nargs=-1,
    required=True,
    shell_complete=candidates.copied,
)
@click.option("-r", "--recursive", is_flag=True, help="Copy folders with all that is in them.")
@click.option(
    "-p",
    "--preserve",
    is_flag=True,
    help="Keep modes as they are, but for setuid, setgid and sticky; else umask decides.",
)
@shared.json_option("Print what was copied as a JSON object.")
@click.pass_obj
def cp(
    invocation: Invocation,
    paths: tuple[str, ...],
    recursive: bool,
    preserve: bool,
    as_json: bool,
) -> None:
    """Copy files between this machine and a session, a container or a host.

    WHERE:PATH is there, all else is here; WHERE is a SESSION, HOST/CONTAINER or HOST. Times are
    kept. A file appears under its name once it is whole. Links that lead out of a copied folder are
    left out. A folder goes by rsync where both machines have it, and only what differs is sent;
    all else goes by tar.
    """
    from jlremote.workflow.copies import copy as workflow

    *sources, target = paths
    if not sources:
        raise Usage("`jlr cp` needs a source and a target", hint="`jlr cp FILE SESSION:PATH`")
    context = invocation.context(silent=as_json)
    copied = workflow.copy(sources, target, context, recursive=recursive, preserve=preserve)
    if as_json:
        answer_json(vars(copied))
