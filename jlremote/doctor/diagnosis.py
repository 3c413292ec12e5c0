"""Findings of checks, and the order in which checks run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from jlremote.errors import JlrError

Facts = TypeVar("Facts")


class Mark(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"  # it works, with something worth knowing
    FAILED = "failed"
    SKIPPED = "skipped"  # it could not be tried


@dataclass(frozen=True)
class Finding:
    """The finding of one check."""

    check: str  # the check's name, the same in every call; empty until it is added
    mark: Mark
    text: str  # what was found, in one sentence
    mend: tuple[str, ...] = ()  # what to do about it: commands, or a sentence; jlr never runs them
    exit_code: int = 0  # the program's, if this is the first check that failed; 0 unless it failed
    group: str = ""  # the machine that was checked: `this machine`, or the host's name

    def to_json(self) -> dict[str, Any]:
        return {name: told for name, told in vars(self).items() if name != "exit_code"}


def fine(text: str) -> Finding:
    """Return the finding of a check that passed."""
    return Finding("", Mark.OK, text)


def warn(text: str, *mend: str) -> Finding:
    """Return the finding of a check that passed, with something worth knowing."""
    return Finding("", Mark.WARNING, text, mend)


def skip(text: str, *mend: str) -> Finding:
    """Return the finding of a check that could not be tried."""
    return Finding("", Mark.SKIPPED, text, mend)


def fail(text: str, *mend: str, exit_code: int = 1) -> Finding:
    """Return the finding of a check that failed."""
    return Finding("", Mark.FAILED, text, mend, exit_code)


def from_error(error: JlrError, *mend: str) -> Finding:
    """Return the finding of a check that failed by an error; the hint is the default `mend`."""
    hint = (error.hint,) if error.hint else ()
    return fail(error.message, *(mend or hint), exit_code=error.exit_code)


@dataclass(frozen=True)
class Check(Generic[Facts]):
    """One check of a table."""

    name: str  # the same in every call
    judge: Callable[[Facts], Finding]  # an error that it raises is its finding
    needs: tuple[str, ...] = ()  # the names of checks without which this one makes no sense


@dataclass
class Diagnosis:
    """The findings so far, in order."""

    findings: list[Finding] = field(default_factory=list)

    def judged(
        self,
        group: str,
        checks: Iterable[Check[Facts]],
        facts: Facts,
        during: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> Iterator[Finding]:
        """Yield each check's finding, or why it is skipped; `during` is given the name of each."""
        for check in checks:
            try:
                finding = self.skipped(check.needs)
                if finding is None:
                    with during(check.name):
                        finding = check.judge(facts)
            except JlrError as error:
                finding = from_error(error)
            self.findings.append(replace(finding, check=check.name, group=group))
            yield self.findings[-1]

    def skipped(self, needs: Sequence[str]) -> Finding | None:
        """Return why a check with these `needs` cannot be tried, `None` if it can."""
        ill = (finding for finding in self.findings if finding.mark in (Mark.FAILED, Mark.SKIPPED))
        missing = next((finding for finding in ill if finding.check in needs), None)
        if missing is None:
            return None
        return skip(missing.text if missing.mark is Mark.SKIPPED else f"needs `{missing.check}`")

    def well(self, *needs: str) -> bool:
        return self.skipped(needs) is None


@dataclass(frozen=True)
class Verdict:
    """The summary of all findings."""

    mark: Mark  # the worst mark; skipped checks do not count
    text: str  # one sentence
    exit_code: int  # that of the first check that failed, 0 if none did

    def to_json(self) -> dict[str, Any]:
        return {"verdict": str(self.mark), "text": self.text, "exit_code": self.exit_code}


def verdict(findings: Sequence[Finding], subject: str, proof: str | None = None) -> Verdict:
    """Return the verdict on findings of `subject`; `proof` names the check that proves them all."""
    failed = [finding for finding in findings if finding.mark is Mark.FAILED]
    if failed:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Verdict(Mark.FAILED, f"{first.check}: {first.text}{more}", first.exit_code)
    warned = [finding.check for finding in findings if finding.mark is Mark.WARNING]
    see = f"; see {', '.join(warned)}" if warned else ""
    proved = {finding.check for finding in findings if finding.mark is Mark.OK}
    if proof is not None and proof not in proved:
        return Verdict(Mark.WARNING, f"{subject}: no problem found; no {proof} was tried{see}", 0)
    return Verdict(Mark.WARNING if warned else Mark.OK, f"{subject} works{see}", 0)
