"""`jlr gpus`."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options.shared import host_argument, json_option
from jlremote.cli.screen.terminal import answer, answer_json, watched

if TYPE_CHECKING:
    from jlremote.workflow.host.context import Context

PAUSE_SECONDS = 0.5


@command(
    "gpus",
    examples=(
        "jlr gpus dgx",
        "jlr gpus dgx --watch",
        "jlr gpus dgx --watch 5",
        "jlr gpus dgx --json | jq -r '.gpus[] | select(.state == \"free\") | .index'",
    ),
)
@host_argument
@click.option(
    "--watch",
    type=click.FloatRange(0.1, 3600),
    is_flag=False,
    flag_value=PAUSE_SECONDS,
    metavar="[SECONDS]",
    help=f"Repeat until Ctrl-C, every SECONDS ({PAUSE_SECONDS:g} by default).",
)
@json_option("Print a JSON object; with --watch one per line.")
@click.pass_obj
def gpus(invocation: Invocation, host: str, watch: float | None, as_json: bool) -> None:
    """Show the GPUs of a host and their users, containers, ages and load.

    STATE is `free`, `busy` (at least 90 % of the time), `partly busy`, `idle, memory held` (memory
    is used and nothing computes), `reserved` (by jlr, for a session or job), `held` or `error`.
    """
    context = invocation.context(silent=as_json)
    if watch is None:
        _show(host, context, as_json=as_json)
        return
    with contextlib.suppress(KeyboardInterrupt):  # that is how it ends
        _watch(host, watch, context, as_json=as_json)


def _show(host: str, context: Context, *, as_json: bool) -> None:
    from jlremote.gpus.inventory_json import to_json
    from jlremote.workflow.host.gpus import inventory

    found = inventory(host, context)
    if as_json:
        answer_json(to_json(found, host))
        return
    from jlremote.cli.screen.gpu_table import show

    show(found)
    for note in found.notes:
        context.progress.note(f"nvidia-smi: {note}")


def _watch(host: str, seconds: float, context: Context, *, as_json: bool) -> None:
    from jlremote.workflow.host.gpus import watch

    snapshots = watch(host, seconds, context)
    if as_json:
        from jlremote.gpus.inventory_json import to_json

        for found in snapshots:
            answer_json(to_json(found, host), indent=None)
    elif watched(sys.stdout):
        from jlremote.cli.screen import gpu_live, tables

        tables.show_live(gpu_live.drawings(host, snapshots))
    else:
        from jlremote.cli.screen.gpu_table import show

        for found in snapshots:
            show(found)
            answer("")
