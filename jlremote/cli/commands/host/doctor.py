"""`jlr doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options.shared import (
    json_option,
    optional_host_argument,
    python_options,
    runtime_options,
)
from jlremote.cli.screen.terminal import answer_json

if TYPE_CHECKING:
    from jlremote.doctor.findings import Finding


@command(
    "doctor",
    examples=(
        "jlr doctor",
        "jlr doctor dgx",
        "jlr doctor dgx --image nvcr.io/nvidia/pytorch:24.05-py3",
        "jlr doctor lab --runtime none --python ~/venv",
        "jlr doctor dgx --json | jq -r '.checks[] | select(.mark == \"failed\") | .mend[]'",
    ),
)
@optional_host_argument
@click.option("--image", metavar="IMAGE", help="Try a new container of this image, then remove it.")
@runtime_options
@python_options
@json_option("Print one JSON object at the end.")
@click.pass_context
def doctor(
    click_context: click.Context,
    host: str | None,
    image: str | None,
    runtime: str | None,
    sudo: bool | None,
    python: str | None,
    conda_env: str | None,
    as_json: bool,
) -> None:
    """Find out what is wrong, and what to do about it.

    Without HOST it checks this machine; with HOST the whole chain: name, login, engine, GPUs,
    disks, and a kernel that answers through the tunnel. That kernel starts in a session that runs
    there, else in a container of --image. The doctor removes what it makes; it only prints advice.

    ✓ works, ! works with a problem, ✗ does not work, - was not tried. The exit code is 0, or that
    of the first ✗: 4 authentication, 5 unreachable, 6 not found, 1 anything else.
    """
    from jlremote.cli.screen.findings import FindingPrinter
    from jlremote.workflow.doctor.doctor import DoctorRequest
    from jlremote.workflow.doctor.doctor import doctor as examine

    request = DoctorRequest(host, image, runtime, sudo, python, conda_env)
    invocation = click_context.ensure_object(Invocation)
    printer = FindingPrinter(quiet=invocation.quiet)
    findings: list[Finding] = []
    context = invocation.context(silent=as_json, lasting=False)
    verdict = examine(request, context, findings.append if as_json else printer.show)
    if as_json:
        checks = [finding.to_json() for finding in findings]
        answer_json({"host": host} | verdict.to_json() | {"checks": checks})
    else:
        printer.close(verdict)
    click_context.exit(verdict.exit_code)
