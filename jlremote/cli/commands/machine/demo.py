"""`jlr demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options.shared import PORT, browse, browser_options, chosen_browser, json_option
from jlremote.cli.screen.terminal import answer_either

if TYPE_CHECKING:
    from jlremote.workflow.session.report import SessionReport


@command(
    "demo",
    examples=(
        "jlr demo",
        "jlr demo --runtime none --no-browser",
    ),
)
@click.option("--image", metavar="IMAGE", help="Image of the container, with a container engine.")
@click.option("--port", type=PORT, metavar="PORT", help="Use exactly this local port.")
@click.option(
    "--runtime",
    type=click.Choice(["auto", "docker", "none"]),
    default="auto",
    show_default=True,
    help="How Jupyter runs; `auto` is in a container if there are an engine and an image.",
)
@browser_options
@json_option("Print the session as a JSON object.")
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

    It starts an SSH server on the loopback interface and a session behind it, as on any host.
    Ctrl-C or `jlr stop` ends it and leaves nothing behind.
    """
    from jlremote.workflow.session.demo import DemoRequest
    from jlremote.workflow.session.demo import demo as run_demo

    name = chosen_browser(browser, no_browser)
    context = invocation.context(silent=as_json)
    running = False

    def ready(report: SessionReport) -> None:
        nonlocal running
        running = True
        answer_either(report.url or "", report.to_json(), as_json=as_json)
        browse(report.url or "", context, browser=name, asked=browser is not None)
        context.progress.note("Ctrl-C ends the demo")

    try:
        run_demo(DemoRequest(image=image, local_port=port, runtime=runtime), context, ready)
    except KeyboardInterrupt:
        if not running:
            raise
