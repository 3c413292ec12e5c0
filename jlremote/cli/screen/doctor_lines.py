"""The lines of `jlr doctor`, each printed as soon as its check is done."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from jlremote.cli.screen.terminal import answer, watched
from jlremote.doctor.diagnosis import Finding, Mark
from jlremote.text import one_line

if TYPE_CHECKING:
    from jlremote.doctor.diagnosis import Verdict

NAME_WIDTH = 13
_SIGNS = {
    Mark.OK: ("✓", "green"),
    Mark.WARNING: ("!", "yellow"),
    Mark.FAILED: ("✗", "red"),
    Mark.SKIPPED: ("-", None),
}
_INDENT = " " * (4 + NAME_WIDTH)


class FindingPrinter:
    """A printer of findings on stdout, under a heading for each machine; `quiet`: problems only."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._group = ""
        self._skipped: dict[str, list[str]] = {}

    def show(self, finding: Finding) -> None:
        if finding.mark is Mark.SKIPPED and not finding.mend:
            self._skipped.setdefault(finding.text, []).append(finding.check)
            return
        if self._quiet and finding.mark in (Mark.OK, Mark.SKIPPED):
            return
        if finding.group != self._group:
            answer(("\n" if self._group else "") + click.style(finding.group, bold=True))
            self._group = finding.group
        answer("\n".join(_lines(finding)))

    def close(self, verdict: Verdict) -> None:
        """Print the checks that were not tried, and the verdict."""
        if not self._quiet:
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
    begin = f"  {click.style(sign, fg=colour)} {finding.check:<{NAME_WIDTH}}"
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
