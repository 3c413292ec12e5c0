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
@shared.json_option("Print what was copied as a JSON object.")
@click.pass_obj
def cp(invocation: Invocation, paths: tuple[str, ...], recursive: bool, as_json: bool) -> None:
    """Copy files between this machine and a session, a container or a host.

    WHERE:PATH is there, all else is here; WHERE is a SESSION, HOST/CONTAINER or HOST. Times and
    modes are kept. A file appears under its name once it is whole, and an interrupted copy goes on
    where it ended. Links that lead out of a copied folder are left out. Folders go by rsync where
    both machines have it: only what differs is sent.
    """
    from jlremote.workflow.copies import copy as workflow

    *sources, target = paths
    if not sources:
        raise Usage("`jlr cp` needs a source and a target", hint="`jlr cp FILE SESSION:PATH`")
    context = invocation.context(silent=as_json)
    copied = workflow.copy(sources, target, context, recursive=recursive)
    if as_json:
        answer_json(vars(copied))
