"""What a check finds, and how checks in a row are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from jlremote.errors import JlrError

Facts = TypeVar("Facts")


class Mark(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"  # it works, and something is worth knowing
    FAILED = "failed"
    SKIPPED = "skipped"  # nothing can be said, for something before it is missing


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        check: the check's name, the same in every call.
        mark: how it ended.
        text: what was found, one sentence.
        mend: what to do about it: commands, or a sentence; nothing runs them.
        exit_code: of the program, if this is the first that failed; 0 unless it failed.
        group: of which machine it speaks: `this machine`, or the host.
    """

    check: str
    mark: Mark
    text: str
    mend: tuple[str, ...] = ()
    exit_code: int = 0
    group: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return {
            "group": self.group,
            "check": self.check,
            "mark": str(self.mark),
            "text": self.text,
            "mend": list(self.mend),
        }


@dataclass(frozen=True)
class Judgement:
    """A judgement before it is known of which check it is."""

    mark: Mark
    text: str
    mend: tuple[str, ...] = ()
    exit_code: int = 0


def fine(text: str) -> Judgement:
    """Return that all is well."""
    return Judgement(Mark.OK, text)


def warn(text: str, *mend: str) -> Judgement:
    """Return that it works, but."""
    return Judgement(Mark.WARNING, text, mend)


def skip(text: str, *mend: str) -> Judgement:
    """Return that nothing can be said."""
    return Judgement(Mark.SKIPPED, text, mend)


def fail(text: str, *mend: str, exit_code: int = 1) -> Judgement:
    """Return that it does not work."""
    return Judgement(Mark.FAILED, text, mend, exit_code)


def from_error(error: JlrError, *mend: str) -> Judgement:
    """Return that it does not work for a reason that an error tells; its hint is the mend."""
    hint = (error.hint,) if error.hint else ()
    return fail(error.message, *(mend or hint), exit_code=error.exit_code)


@dataclass(frozen=True)
class Check(Generic[Facts]):
    """A line of the table.

    Attributes:
        name: what it is called in every call.
        judge: a pure function of the facts.
        needs: the checks that must not have failed before this one makes sense.
    """

    name: str
    judge: Callable[[Facts], Judgement]
    needs: tuple[str, ...] = ()


@dataclass
class Diagnosis:
    """All that was found so far, in order."""

    findings: list[Finding] = field(default_factory=list)

    def judged(self, group: str, checks: Iterable[Check[Facts]], facts: Facts) -> Iterator[Finding]:
        """Give what each check finds; one that needs another which is not well is skipped."""
        for check in checks:
            yield self.add(group, check.name, self.skipped(check.needs) or check.judge(facts))

    def add(self, group: str, check: str, judgement: Judgement) -> Finding:
        """Keep an judgement as the finding of a check, and return that."""
        rest = (judgement.mark, judgement.text, judgement.mend, judgement.exit_code)
        finding = Finding(check, *rest, group=group)
        self.findings.append(finding)
        return finding

    def skipped(self, needs: Sequence[str]) -> Judgement | None:
        """Return that a check cannot be tried for want of another, `None` if it can.

        What was skipped itself hands on its reason, so that all that follows names the first one.
        """
        missing = next((finding for finding in self.findings if _ill(finding, needs)), None)
        if missing is None:
            return None
        return skip(missing.text if missing.mark is Mark.SKIPPED else f"needs `{missing.check}`")

    def well(self, *needs: str) -> bool:
        """Return whether none of some checks stands in the way."""
        return self.skipped(needs) is None


def _ill(finding: Finding, needs: Sequence[str]) -> bool:
    return finding.check in needs and finding.mark in (Mark.FAILED, Mark.SKIPPED)


@dataclass(frozen=True)
class Verdict:
    """What it comes to.

    Attributes:
        mark: the worst of all marks; skipped ones do not count.
        text: one sentence.
        exit_code: of the first that failed, 0 for none.
    """

    mark: Mark
    text: str
    exit_code: int

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return {"verdict": str(self.mark), "text": self.text, "exit_code": self.exit_code}


def verdict(findings: Sequence[Finding], subject: str, proof: str | None = None) -> Verdict:
    """Return what findings come to.

    Args:
        findings: in order.
        subject: what they are of, as a sentence begins.
        proof: the check that proves all the rest, where there is one.
    """
    failed = [finding for finding in findings if finding.mark is Mark.FAILED]
    if failed:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Verdict(Mark.FAILED, f"{first.check}: {first.text}{more}", first.exit_code)
    warned = [finding.check for finding in findings if finding.mark is Mark.WARNING]
    see = f"; see {', '.join(warned)}" if warned else ""
    proved = {finding.check for finding in findings if finding.mark is Mark.OK}
    if proof is not None and proof not in proved:
        return Verdict(Mark.WARNING, f"{subject}: no fault found, and no {proof} tried{see}", 0)
    return Verdict(Mark.WARNING if warned else Mark.OK, f"{subject} works{see}", 0)
