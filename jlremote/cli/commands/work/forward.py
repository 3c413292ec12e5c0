"""`jlr forward`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.workflow.forward.port_report import PortReport
    from jlremote.workflow.host.context import Context

_PORTS = click.IntRange(1, 65535)


@command(
    "forward",
    examples=(
        "jlr forward 6006                  # TensorBoard in the latest session",
        "jlr forward dgx/cont1 7860",
        "jlr forward",
        "jlr forward cont1 --remove 6006",
        "jlr forward --json | jq -r '.[] | select(.state == \"up\") | .local_port'",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions)
@click.argument("port", required=False, type=_PORTS)
@click.option("--remove", type=_PORTS, metavar="PORT", help="Forward this port no more.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
@click.pass_obj
def forward(
    invocation: Invocation,
    session: str | None,
    port: int | None,
    remove: int | None,
    as_json: bool,
) -> None:
    """Forward a further port of a session, or list those that are forwarded.

    PORT is one of the container, such as TensorBoard's 6006, and may be opened there later. The
    local address is printed; the port is the same here if it is free. It comes back whenever the
    connection does, and goes with `jlr stop`.

    A number alone is a PORT of the latest session; without PORT the forwarded ones are listed, as
    `up`, `closed` (nothing listens there) or `taken` (by somebody else).
    """
    if port is None and session is not None and session.isdecimal():
        session, port = None, _PORTS(session)
    if remove is not None and port is not None:
        raise Usage("`--remove` names the port itself", hint=f"`jlr forward --remove {remove}`")
    from jlremote.workflow.session import further_ports

    context = invocation.context(silent=as_json)
    if port is not None:
        _show_address(further_ports.add(session, port, context), context, as_json=as_json)
        return
    if remove is not None:
        further_ports.remove(session, remove, context)
        context.progress.note(f"port {remove} is forwarded no more")
    _show(further_ports.listed(session, context), context, as_json=as_json)


def _show_address(report: PortReport, context: Context, *, as_json: bool) -> None:
    if as_json:
        answer_json([report.to_json()])
        return
    answer(report.url)
    if report.detail:
        context.progress.note(report.detail)


def _show(reports: list[PortReport], context: Context, *, as_json: bool) -> None:
    from jlremote.cli.screen import tables

    if as_json:
        answer_json([report.to_json() for report in reports])
    elif reports:
        tables.show_table(tables.PORT_HEADINGS, [tables.port_row(report) for report in reports])
    else:
        context.progress.note("no further ports; `jlr forward PORT` forwards one")
