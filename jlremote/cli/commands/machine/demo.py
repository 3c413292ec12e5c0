"""`jlr demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli.invocation import Invocation, command
from jlremote.cli.screen.browse import browse, browser_options, chosen_browser
from jlremote.cli.screen.terminal import answer, answer_json

if TYPE_CHECKING:
    from jlremote.workflow.session.report import SessionReport


@command(
    "demo",
    examples=(
        "jlr demo",
        "jlr demo --runtime none --no-browser",
    ),
)
@click.option("--image", help="With a container engine: the container's image.")
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="Exactly this port on this machine."
)
@click.option(
    "--runtime",
    type=click.Choice(["auto", "docker", "none"]),
    default="auto",
    show_default=True,
    help="How Jupyter runs; `auto` takes a container if there is an engine and an image.",
)
@browser_options
@click.option("--json", "as_json", is_flag=True, help="Print the session as one JSON object.")
@click.pass_obj
def demo(
    invocation: Invocation,
    image: str | None,
    port: int | None,
    runtime: str,
    browser: str | None,
    no_browser: bool,
    as_json: bool,
) -> None:
    """Try jlr on this machine, without a server.

    An SSH server of its own on the loopback, JupyterLab behind it, and the same way to it as to any
    host. It ends with Ctrl-C or `jlr stop`, and leaves nothing behind.
    """
    from jlremote.workflow.session.demo import DemoRequest
    from jlremote.workflow.session.demo import demo as run_demo

    name = chosen_browser(browser, no_browser)
    context = invocation.context(silent=as_json)
    running = False

    def ready(report: SessionReport) -> None:
        nonlocal running
        running = True
        if as_json:
            answer_json(report.to_json())
        else:
            answer(report.url or "")
        browse(report.url or "", context, browser=name, asked=browser is not None)
        context.progress.note("Ctrl-C ends the demo")

    try:
        run_demo(DemoRequest(image=image, local_port=port, runtime=runtime), context, ready)
    except KeyboardInterrupt:
        if not running:
            raise
