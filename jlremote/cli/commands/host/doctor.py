"""`jlr doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.options.engine import runtime_options
from jlremote.cli.screen.terminal import answer_json

if TYPE_CHECKING:
    from jlremote.doctor.findings import Finding, Verdict
    from jlremote.workflow.doctor.doctor import DoctorRequest


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
@click.argument("host", required=False, shell_complete=candidates.hosts)
@click.option("--image", help="Try it in a new container of this image, and remove that again.")
@runtime_options
@click.option(
    "--python", metavar="PATH", help="With --runtime none: a Python, or a virtual environment."
)
@click.option("--conda-env", metavar="NAME", help="With --runtime none: a conda environment.")
@click.option("--json", "as_json", is_flag=True, help="Print one object when all is known.")
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

    Without HOST it looks at this machine; with HOST at the whole chain: from the name to the login,
    to the engine, the GPUs and the disks, to a kernel that answers through the tunnel. The end of
    it is tried on the session that runs there, with a kernel of its own, else on a container of
    --image. Whatever it makes it removes, and what it advises it never runs.

    ✓ is well, ! works but, ✗ does not work, - could not be tried. The exit code is 0, or that of
    the first ✗: 4 authentication, 5 unreachable, 6 not found, 1 anything else.
    """
    from jlremote.workflow.doctor.doctor import DoctorRequest

    request = DoctorRequest(host, image, runtime, sudo, python, conda_env)
    invocation = click_context.ensure_object(Invocation)
    verdict = (_as_json if as_json else _shown)(invocation, request)
    click_context.exit(verdict.exit_code)


def _shown(invocation: Invocation, request: DoctorRequest) -> Verdict:
    from jlremote.cli.screen.chain import Chain
    from jlremote.workflow.doctor.doctor import doctor as examine

    chain = Chain(quiet=invocation.quiet)
    verdict = examine(request, invocation.context(lasting=False), chain.show)
    chain.close(verdict)
    return verdict


def _as_json(invocation: Invocation, request: DoctorRequest) -> Verdict:
    from jlremote.workflow.doctor.doctor import doctor as examine

    findings: list[Finding] = []
    verdict = examine(request, invocation.context(silent=True), findings.append)
    checks = [finding.to_json() for finding in findings]
    answer_json({"host": request.host} | verdict.to_json() | {"checks": checks})
    return verdict
