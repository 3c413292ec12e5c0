"""`jlr gpus` and `jlr doctor`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import Invocation, command, option
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer, answer_json, as_json, tell, watched
from jlremote.doctor.diagnosis import Finding, Mark, Verdict
from jlremote.errors import Usage
from jlremote.laptop.settings.options import is_pool
from jlremote.text import one_line, printable

if TYPE_CHECKING:
    from jlremote.cli.screen.gpu_table import Shown
    from jlremote.hosts.context import Context

PAUSE_SECONDS = 0.5
POOL_SECONDS = 2.0  # the least pause between questions to all hosts of a pool
_SIGNS = {
    Mark.OK: ("✓", "green"),
    Mark.WARNING: ("!", "yellow"),
    Mark.FAILED: ("✗", "red"),
    Mark.SKIPPED: ("-", None),
}
_NAME_WIDTH = 13
_INDENT = " " * (4 + _NAME_WIDTH)


@command("gpus", json="Print a JSON object; with --watch one per line.")
@shared.default_host_argument
@option(
    "--watch [SECONDS]",
    f"Repeat until Ctrl-C, every SECONDS ({PAUSE_SECONDS:g} by default).",
    type=shared.number(0.1, 3600),
    flag_value=PAUSE_SECONDS,
)
def gpus(invocation: Invocation, host: str, watch: float | None) -> None:
    """Show the GPUs of a host and their users, containers, ages and load.

    STATE is `free`, `busy` (at least 90 % of the time), `partly busy`, `idle, memory held` (memory
    is used and nothing computes), `reserved` (by jlr, for a session or job), `assigned, idle` (to a
    container, or to a job of Slurm), `cannot tell`, `held` or `error`.

    On a login node of a cluster that has no GPU, show the partitions as Slurm knows them: their
    free GPUs, and the jobs that hold the others, yours first; --watch asks once a minute.

    HOST may be a pool, `@NAME`. Default: the host of the settings, else the latest session's.

    Examples:
        jlr gpus dgx
        jlr gpus dgx --watch
        jlr gpus @lab                 # all hosts of [pools.lab], in one table
        jlr gpus dgx --json | jq -r '.gpus[] | select(.state == "free") | .index'
    """
    from jlremote.cli.screen import gpu_table, reports

    context, noted = invocation.context(), set[str]()
    # That is how a watch ends.
    with contextlib.suppress(*() if watch is None else (KeyboardInterrupt,)):
        snapshots = _snapshots(host, watch, context, invocation)
        if watch is not None and not as_json() and watched(sys.stdout):
            reports.show_live(gpu_table.drawn(host, shown) for shown in snapshots)
            return
        for shown in snapshots:
            if as_json():
                answer_json(gpu_table.document(shown, host), indent=2 if watch is None else None)
                continue
            gpu_table.show(shown)
            for note in gpu_table.notes_of(shown):
                if note not in noted:
                    context.progress.note(note)
            noted.update(gpu_table.notes_of(shown))
            if watch is not None:
                answer("")


def _snapshots(
    host: str, watch: float | None, context: Context, invocation: Invocation
) -> Iterable[Shown]:
    from jlremote.gpus import host_gpus
    from jlremote.hosts import links

    if watch is None and is_pool(host):
        answers = host_gpus.of_pool(host, context)
        if not as_json():
            links.note_silent(answers, context)
        return [answers]
    if watch is None:
        return [host_gpus.inventory(host, context)]
    if is_pool(host):
        # A step for each look would bury what is watched.
        silent = invocation.context(silent=True)
        return host_gpus.watch_pool(host, max(watch, POOL_SECONDS), silent)
    return host_gpus.watch(host, watch, context)


@command("doctor", json="Print one JSON object at the end.")
@shared.optional_host_argument
@option("--image IMAGE", "Try a new container of this image, then remove it.")
@shared.runtime_options
@shared.python_options
@option(
    "--report report_file FILE",
    "Write a report without secrets to FILE; a terminal shows it first, and asks.",
    type=click.Path(path_type=Path),
)
def doctor(invocation: Invocation, /, *, report_file: Path | None, **options: Any) -> int:
    """Find out what is wrong, and what to do about it.

    Without HOST it checks this machine; with HOST the whole chain: name, login, engine, GPUs,
    disks, and a kernel that answers through the tunnel. That kernel starts in a session that runs
    there, else in a container of --image. The doctor removes what it makes; it only prints advice.

    ✓ works, ! works with a problem, ✗ does not work, - was not tried. The exit code is 0, or that
    of the first ✗: 4 authentication, 5 unreachable, 6 not found, 1 anything else.

    Examples:
        jlr doctor dgx
        jlr doctor dgx --image nvcr.io/nvidia/pytorch:24.05-py3
        jlr doctor lab --runtime none --python ~/venv
        jlr doctor dgx --report report.txt     # to attach to a bug report
        jlr doctor dgx --json | jq -r '.checks[] | select(.mark == "failed") | .mend[]'
    """
    from jlremote.doctor import doctor as workflow

    request = workflow.DoctorRequest(**options)
    if report_file is not None:
        if as_json():
            raise shared.refused_together("--report", "--json")
        if os.path.lexists(report_file):  # also of a name that is too long for a file
            raise Usage(f"`{report_file}` exists already", hint="name a new file, or remove it")
        if not report_file.parent.is_dir():
            raise Usage(f"no folder `{report_file.parent}`", hint="name a file in another one")
    printer = FindingPrinter(invocation.quiet)
    findings: list[Finding] = []
    context = invocation.context(lasting=False)
    collects = as_json() or report_file is not None
    verdict = workflow.doctor(request, context, findings.append if collects else printer.show)
    if report_file is not None:
        from jlremote.doctor.bug_report import report

        text = report(request.host, findings, verdict, context)
        _write_report(text, report_file, asks=not invocation.no_input and sys.stdin.isatty())
    elif as_json():
        checks = [finding.to_json() for finding in findings]
        answer_json({"host": request.host} | verdict.to_json() | {"checks": checks})
    else:
        printer.close(verdict)
    return verdict.exit_code


def _write_report(text: str, file: Path, *, asks: bool) -> None:
    from jlremote.laptop import paths

    answer(text, newline=False)
    if asks and not click.confirm(f"Write this to `{printable(str(file))}`?", err=True):
        return
    paths.write_new(file, text)
    tell(f"wrote `{file}`; read it once more before you send it")


@dataclass
class FindingPrinter:
    """A printer of findings on stdout, under a heading for each machine; `quiet`: problems only."""

    quiet: bool
    _group: str = ""
    _skipped: dict[str, list[str]] = field(default_factory=dict)

    def show(self, finding: Finding) -> None:
        if finding.mark is Mark.SKIPPED and not finding.mend:
            self._skipped.setdefault(finding.text, []).append(finding.check)
            return
        if self.quiet and finding.mark in (Mark.OK, Mark.SKIPPED):
            return
        if finding.group != self._group:
            answer(("\n" if self._group else "") + click.style(finding.group, bold=True))
            self._group = finding.group
        answer("\n".join(_lines(finding)))

    def close(self, verdict: Verdict) -> None:
        """Print the checks that were not tried, and the verdict."""
        if not self.quiet:
            for reason, checks in self._skipped.items():
                text = f"{', '.join(checks)}: {reason}"
                answer("\n".join(_lines(Finding("not tried", Mark.SKIPPED, text))))
        sign, colour = _SIGNS[verdict.mark]
        lines = (click.style(line, bold=True) for line in _wrapped(one_line(verdict.text), 2))
        text = f"{click.style(sign, fg=colour)} " + "\n  ".join(lines)
        answer(f"\n{text}" if self._group else text)


def _lines(finding: Finding) -> Iterator[str]:
    sign, colour = _SIGNS[finding.mark]
    dim = finding.mark is Mark.SKIPPED or None
    first, *rest = _wrapped(one_line(finding.text), len(_INDENT))
    begin = f"  {click.style(sign, fg=colour)} {finding.check:<{_NAME_WIDTH}}"
    yield f"{begin}{click.style(first, dim=dim)}"
    yield from (_INDENT + click.style(line, dim=dim) for line in rest)
    arrow = "→ "
    for mend in map(one_line, finding.mend):
        # A command is not wrapped, so that it can be copied.
        lines = _wrapped(mend, len(_INDENT + arrow)) if "`" in mend else [mend]
        for number, line in enumerate(lines):
            mark = " " * len(arrow) if number else arrow
            yield f"{_INDENT}{click.style(mark + line, fg='cyan')}"


def _wrapped(text: str, indent: int) -> list[str]:
    if not watched(sys.stdout):
        return [text]
    width = max(30, shutil.get_terminal_size().columns - indent)
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
