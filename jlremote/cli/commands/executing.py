"""`jlr exec`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from jlremote.cli.command import Invocation, command, option
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import AS_JSON, answer_either, as_json
from jlremote.errors import JlrError, NotFound, Usage
from jlremote.text import one_line, reason_of


def _lines_too(context: click.Context, _option: click.Parameter, value: bool) -> bool:
    context.meta[AS_JSON] = context.meta.get(AS_JSON) or value
    return value


@command("exec")
@click.argument("session", required=False, shell_complete=candidates.sessions_and_files)
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@option("-c code CODE", "Run this code.")
@option("--notebook NOTEBOOK", "Run it in the kernel of this notebook, which must run.")
@option("-k --kernel KIND", "Run it in a lasting kernel of this kind.")
@option(
    "--out FOLDER",
    "Write images, HTML and PDF to new files of this folder.",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@option(
    "--sync [=DIR]",
    "Send this folder, or DIR, there first; run in it, also later calls.",
    flag_value=".",
)
@option(
    "--timeout TIME",
    "End after `30s`, `4m`, …; the code runs on, and its run is named.",
    type=shared.span("--timeout"),
)
@option("--no-wait", "Fail (exit code 7) if the kernel is busy.")
@option("--interrupt", "Interrupt what runs in the kernel, and run nothing.")
@shared.json_option("Print one JSON object at the end, with the last 64,000 characters of output.")
@option("--json-lines", "Print each event as a line of JSON, as it comes.", callback=_lines_too)
def execute(
    invocation: Invocation,
    /,
    *,
    session: str | None,
    file: str | None,
    code: str | None,
    out: Path | None,
    sync: str | None,
    interrupt: bool,
    json_lines: bool,
    **options: Any,
) -> int:
    """Execute code in a kernel of a session, and print what it prints.

    It is CODE, a FILE of this machine (of a notebook its code cells, up to the first that fails),
    or stdin for `-`. It runs in one lasting kernel of `jlr exec`, so variables stay from one call
    to the next; with --notebook in that notebook's kernel, whose page stays as it is.

    Printed text and results go to stdout, errors to stderr, and the exit code is 1 if the code
    fails. `jlr output` has all of it, too. Ctrl-C interrupts the code, a second one leaves it
    running. `input()` asks on a terminal, and fails without one.

    Examples:
        jlr exec -c 'x = [1, 2]'
        jlr exec -c 'sum(x)'                         # variables stay
        jlr exec cont1 train.py --timeout 4m
        jlr exec cont1 train.py --sync               # with the modules of this folder
        jlr exec dgx/cont1 --notebook train.ipynb -c 'print(loss)'
        jlr exec --interrupt                         # what was left running
        jlr exec -c 'df.plot()' --out .              # images to files
        echo 1 + 1 | jlr exec -
        jlr exec -c 1/0 --json | jq -r .status
    """
    notebook, kernel = options["notebook"], options["kernel"]
    if notebook is not None and kernel is not None:
        raise Usage("`--notebook` and `--kernel` are two kernels", hint="leave out one of them")
    from jlremote.cli.screen import exec_output
    from jlremote.kernels import execution

    context = invocation.context()
    if interrupt:
        if code is not None or file is not None:
            raise Usage("`--interrupt` runs no code", hint="leave out the code")
        place = execution.interrupt(session, notebook, kernel, context)
        text = f"interrupted the kernel of `{one_line(place.kernel.notebook)}`"
        answer_either(text, place.to_json())
        return 0
    if code is None and file is None:
        session, file = None, session
    if (code is None) == (file is None):
        raise Usage("one of `-c CODE` and FILE is needed", hint="`jlr exec -c 1+1`; `-` is stdin")
    cells = [code] if code is not None else _cells(str(file))
    asks = not invocation.no_input and sys.stdin.isatty()
    if sync is not None:
        from jlremote.copies.sync import SyncRequest, sync_all

        into = sync_all(SyncRequest(Path(sync).expanduser(), session), context)
        cells = [f"__import__('os').chdir({into!r})", *cells]
    seconds, waits = options["timeout"], not options["no_wait"]
    request = execution.ExecRequest(session, cells, notebook, kernel, seconds, waits, asks)
    place, records = execution.execute(request, context)
    if json_lines or not as_json():
        take = exec_output.as_lines(place) if json_lines else exec_output.as_text()
        return exec_output.show(records, take, out, context)
    told = exec_output.ExecObject(place)
    try:
        return exec_output.show(records, told.take, out, context)
    finally:
        told.show()


def _cells(file: str) -> list[str]:
    """Return the codes of a file of this machine, or of stdin."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as failure:
        why, gives = reason_of(failure), "`-c CODE` gives code itself"
        raise NotFound(f"cannot read `{one_line(file)}`: {why}", hint=gives) from failure
    if file.endswith(".ipynb"):
        from jlremote.output.notebook_copy import code_cells

        return code_cells(data, one_line(file))
    try:
        return [data.decode("utf-8-sig")]
    except UnicodeDecodeError:
        raise JlrError(f"`{one_line(file)}` is not text in UTF-8") from None
