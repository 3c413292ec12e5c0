"""`jlr forward`."""

from __future__ import annotations

import shlex
from typing import Any

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_either, answer_words, as_json, shown
from jlremote.errors import Usage


def _ports(value: Any) -> tuple[int | None, int]:
    """Return the local port or `None`, and the port of the container, as ssh writes them."""
    if isinstance(value, tuple):
        return value
    local, colon, port = value.rpartition(":")
    there = shared.port(port)
    return (shared.port(local) if colon else None), there


@command(
    "forward",
    examples=(
        "jlr forward 6006                  # TensorBoard in the latest session",
        "jlr forward dgx/cont1 7860",
        "jlr forward cont1 8080:6006       # at port 8080 of this machine",
        "jlr forward cont1 5432 --host     # a database on the host, also in another container",
        "jlr forward",
        "jlr forward cont1 --remove 6006",
        "jlr forward --json | jq -r '.[] | select(.state == \"up\") | .local_port'",
    ),
)
@shared.session_argument
@click.argument("port", required=False, type=_ports, metavar="[[LOCAL:]PORT]")
@click.option("--host", "on_host", is_flag=True, help="PORT is the host's, not the container's.")
@click.option("--remove", type=shared.port, metavar="PORT", help="Stop forwarding this port.")
@shared.json_option("Print a JSON array.")
@click.pass_obj
def forward(
    invocation: Invocation,
    session: str | None,
    port: tuple[int | None, int] | None,
    on_host: bool,
    remove: int | None,
) -> None:
    """Forward a further port of a session, or list the forwarded ports.

    PORT is a port in the container, for example TensorBoard's 6006; it may be opened there later.
    The local address is printed; it has exactly the port LOCAL, or else PORT if that is free here.
    On a terminal that is a name of its own, which browsers resolve, and else 127.0.0.1. The forward
    comes back with the connection and ends with `jlr stop`.

    With --host PORT is one of the host itself: of a service there, of a program of yours, or one
    that a container publishes. Other users' programs are refused.

    A number alone is a PORT of the latest session. Without PORT the forwarded ports are listed:
    `up`, `closed` (nothing listens there) or `taken` (by another program).
    """
    if port is None and session is not None and (":" in session or session.isdecimal()):
        session, port = None, _ports(session)
    if on_host and port is None:
        raise Usage("`--host` needs a port", hint="`jlr forward SESSION PORT --host`")
    if remove is not None and port is not None:
        removal = f"jlr forward {shlex.quote(session or 'SESSION')} --remove {remove}"
        raise Usage("`--remove` already names the port", hint=f"`{removal}`")
    from jlremote.sessions import further_ports

    context = invocation.context()
    if port is not None:
        local, there = port
        report = further_ports.add(session, there, context, exact=local, on_host=on_host)
        address = report.address
        answer_either(shown(address), [report.to_json()])
        if shown(address) != address.url:
            context.progress.note(f"in Safari, or if the program refuses that name: {address.url}")
        if report.detail:
            context.progress.note(report.detail)
        return
    if remove is not None:
        further_ports.remove(session, remove, context)
        context.progress.note(f"stopped forwarding port {remove}")
    from jlremote.cli.screen import reports, tables

    found = further_ports.listed(session, context)
    none = "no further ports; `jlr forward PORT` adds one"
    tables.show_reports(found, reports.PORTS, context, none=none)
    for reason in () if as_json() else reports.port_reasons(found):
        answer_words(reason)
