"""`jlr code`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.options.origin import named_as_set
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.storage.settings.options import EDITORS


@command(
    "code",
    examples=(
        "jlr code                              # VS Code on the latest session's folder",
        "jlr code cont1 /data/project",
        'jlr code cont1 --editor cursor        # in config.toml: editor = "cursor"',
        "jlr code dgx/cont1 --print            # the command, and nothing else",
    ),
)
@click.argument(
    "where",
    metavar="[SESSION|HOST/CONTAINER|HOST]",
    required=False,
    shell_complete=candidates.places,
)
@click.argument("path", required=False)
@click.option("--editor", type=click.Choice(EDITORS), help="Editor to open. Default: vscode.")
@click.option("--print", "only_shown", is_flag=True, help="Print the command and open nothing.")
@shared.json_option("Print the name for ssh, the folder and the command as a JSON object.")
@click.pass_obj
def code(
    invocation: Invocation,
    where: str | None,
    path: str | None,
    editor: str | None,
    only_shown: bool,
    as_json: bool,
) -> None:
    """Open an editor of this machine on a session's folder.

    The editor reaches it by ssh, as NAME.jlr (see `jlr ssh-config`), over the connection that jlr
    has: no second login, in a container or on a cluster's node, and nothing installed there but
    what the editor itself puts into the home folder. PyCharm is opened by JetBrains Toolbox.
    """
    from jlremote.storage.settings import settings
    from jlremote.workflow.editors import code as workflow

    chosen = str(settings.load().chosen(None, {"editor": editor}).get("editor", EDITORS[0]))
    context = invocation.context(silent=as_json)
    with named_as_set(None, {"editor": editor}, ("editor",)):
        found = workflow.code(where, path, chosen, context, only_shown=only_shown)
    if as_json:
        answer_json({"editor": chosen, **vars(found)})
    elif only_shown:
        answer(found.command)
