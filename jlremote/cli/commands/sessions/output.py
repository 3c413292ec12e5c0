"""`jlr output`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_either, answer_json, as_json
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.hosts.context import Context

NOTEBOOK = ".ipynb"


@command(
    "output",
    examples=(
        "jlr output",
        "jlr output cont1 train.ipynb",
        "jlr output -f                         # and what comes, until Ctrl-C",
        "jlr output train.ipynb --save here.ipynb",
        "jlr output dgx/cont1 --json | jq -r '.[] | select(.status == \"error\") | .code'",
    ),
)
@shared.session_argument
@click.argument("notebook", required=False)
@click.option("-f", "--follow", is_flag=True, help="Show also what comes, until Ctrl-C.")
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="COPY",
    help="Write a copy of the notebook with all outputs in their cells.",
)
@click.option("--force", is_flag=True, help="Let --save overwrite the file that it names.")
@shared.json_option("Print a JSON array, an object for each run of a cell; with -f one per line.")
@click.pass_obj
def output(
    invocation: Invocation,
    session: str | None,
    notebook: str | None,
    follow: bool,
    save: Path | None,
    force: bool,
) -> int:
    """Show what a session's cells printed, also while no page was open.

    NOTEBOOK is a path below Jupyter's root, or its end; by default all, with --save the one that
    ran last. A program on the host records the kernels, so a closed lid or a lost connection loses
    nothing; 200 MB of a session are kept. The exit code is 1 if the last cell of a notebook ended
    with its kernel.
    """
    if session is not None and notebook is None and session.endswith(NOTEBOOK):
        session, notebook = None, session
    if save is not None and follow:
        raise Usage("`--save` and `--follow` cannot be combined", hint="leave one of them out")
    if force and save is None:
        raise Usage("`--force` is for `--save`", hint="add `--save COPY.ipynb`")
    context = invocation.context()
    if save is not None:
        _save(session, notebook, save, context, force=force)
    elif follow:
        _follow(session, notebook, context)
    else:
        return _show(session, notebook, context)
    return 0


def _show(session: str | None, notebook: str | None, context: Context) -> int:
    from jlremote.output import view
    from jlremote.output.reading import recorded
    from jlremote.output.runs import KERNEL_ENDS
    from jlremote.text import size_in_words

    found = recorded(session, notebook, context, end_only=not as_json())
    latest = {run.notebook: run for run in found.runs}.values()
    code = 1 if any(run.status in KERNEL_ENDS for run in latest) else 0
    if as_json():
        answer_json([run.to_json() for run in found.runs])
        return code
    from jlremote.cli.screen.program_output import CellOutput

    CellOutput().show(view.whole(found.runs, found.lost))
    if not found.runs:
        context.progress.note("no cell has run")
    if found.left_out:
        size, place = size_in_words(found.left_out), f"{found.session.host}/{found.session.name}"
        context.progress.note(
            f"{size} of records before that are left out; `jlr output {place} --json` has them"
        )
    return code


def _follow(session: str | None, notebook: str | None, context: Context) -> None:
    from jlremote.output.reading import followed
    from jlremote.output.view import Live, ended

    records = followed(session, notebook, context)
    if as_json():
        for run in ended(record for record in records if record is not None):
            answer_json(run.to_json(), indent=None)
        return
    from jlremote.cli.screen.program_output import CellOutput

    live, screen = Live(), CellOutput()
    screen.show(live.begin(iter(records.__next__, None)), live.current)
    for record in records:
        if record is not None:
            screen.show(live.take(record), live.current)


def _save(
    session: str | None, notebook: str | None, copy: Path, context: Context, *, force: bool
) -> None:
    from jlremote.output import notebook_copy
    from jlremote.output.reading import recorded
    from jlremote.text import one_line

    notebook_copy.check_destination(copy, force=force)
    saved = notebook_copy.save(recorded(session, notebook, context), copy, context, force=force)
    cells = "1 cell" if saved.cells == 1 else f"{saved.cells} cells"
    told = f"`{saved.file}` is `{one_line(saved.notebook)}` with the outputs of {cells}"
    answer_either(told, saved.to_json())
    if saved.incomplete:
        context.progress.note(
            f"some output of {saved.incomplete} of them was not recorded; `jlr output` says why"
        )
    if saved.homeless:
        context.progress.note(
            f"{saved.homeless} further runs are of cells that it has not any more; "
            "`jlr output` shows them"
        )
