"""A chain is judged in order: what needs a broken link is not tried, the first fault decides."""

from __future__ import annotations

from jlremote.doctor.diagnosis import (
    Check,
    Diagnosis,
    Finding,
    Mark,
    fail,
    fine,
    from_error,
    skip,
    verdict,
    warn,
)
from jlremote.errors import Authentication, NotFound

CHAIN: tuple[Check[dict[str, Finding]], ...] = (
    Check("name", lambda facts: facts["name"]),
    Check("port", lambda facts: facts["port"], needs=("name",)),
    Check("disk", lambda facts: facts["disk"]),
    Check("kernel", lambda facts: facts["kernel"], needs=("port", "disk")),
)
WELL = {check.name: fine("well") for check in CHAIN}


def judged(**other: Finding) -> list[Finding]:
    return list(Diagnosis().judged("lab", CHAIN, WELL | other))


def marks(findings: list[Finding]) -> list[str]:
    return [str(finding.mark) for finding in findings]


def test_what_needs_a_broken_link_is_skipped_and_names_the_first_reason() -> None:
    findings = judged(name=fail("gone", exit_code=5))
    assert marks(findings) == ["failed", "skipped", "ok", "skipped"]
    assert findings[3].text == findings[1].text == "needs `name`"


def test_a_warning_keeps_nothing_from_being_tried() -> None:
    assert marks(judged(name=warn("odd"))) == ["warning", "ok", "ok", "ok"]


def test_the_first_fault_is_the_verdict_and_its_cause_the_exit_code() -> None:
    found = verdict(judged(port=fail("shut", exit_code=5), disk=fail("full")), "`lab`", "kernel")
    assert found.mark is Mark.FAILED
    assert found.exit_code == 5
    assert found.text == "port: shut (and 1 more)"


def test_warnings_and_what_was_not_tried_end_well_and_are_named() -> None:
    assert verdict(judged(), "`lab`", "kernel").text == "`lab` works"
    warned = verdict(judged(disk=warn("little")), "`lab`", "kernel")
    assert (warned.mark, warned.text, warned.exit_code) == (
        Mark.WARNING,
        "`lab` works; see disk",
        0,
    )
    untried = verdict(judged(kernel=skip("no image")), "`lab`", "kernel")
    assert untried.exit_code == 0
    assert untried.text == "`lab`: no problem found; no kernel was tried"


def test_an_error_brings_its_exit_code_and_its_hint() -> None:
    refused = from_error(Authentication("no", hint="another key"))
    assert (refused.exit_code, refused.mend) == (4, ("another key",))
    assert from_error(NotFound("none", hint="x"), "a command").mend == ("a command",)
