"""The report that a person attaches to a bug report: useful, and without secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jlremote import __version__
from jlremote.doctor.bug_report import LINES, report
from jlremote.doctor.diagnosis import Finding, Mark, Verdict
from jlremote.laptop import paths
from jlremote.link.wire.link_files import LinkFiles
from tests.stories.parts import context

SECRETS = (
    "5ec2e7" * 8,  # as Jupyter's tokens are
    "correct horse battery",
    "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU",
    "hf_abcdefghijklmnopqrst",
    "swordfish",
)
LOG = f"""\
link to dgx: jlr 1.0
GET /cont1/lab?token={SECRETS[0]}&x=1
ask: {{"password": "{SECRETS[1]}"}}
-----BEGIN OPENSSH PRIVATE KEY-----
{SECRETS[2]}
-----END OPENSSH PRIVATE KEY-----
docker run -e X={SECRETS[3]} https://me:{SECRETS[4]}@registry.example/x
the last line\x1b]52;c;ZXZpbA==\x07
"""
CONFIG = f"""
[hosts.dgx]
runtime = "docker"
env = ["WORD={SECRETS[4]}"]
engine-arguments = ["--label", "{SECRETS[4]}"]
"""
FINDINGS = (Finding("engine", Mark.FAILED, f"token={SECRETS[0]}", ("restart it",), 1, "dgx"),)
VERDICT = Verdict(Mark.FAILED, "engine: it does not run", 1)


@pytest.fixture(autouse=True)
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    settings = tmp_path / "jlr" / "config.toml"
    settings.parent.mkdir(mode=0o700, exist_ok=True)
    settings.write_text(CONFIG, encoding="utf-8")
    LinkFiles("dgx", None).log.write_text(LOG, encoding="utf-8")


@pytest.mark.parametrize("host", ["dgx", None])
def test_a_report_tells_findings_settings_and_logs_without_a_secret(host: str | None) -> None:
    bug = paths.log_directory() / "bug-20260101-000000-1.log"
    bug.write_text(f"KeyError: 'secret = {SECRETS[4]}'", encoding="utf-8")
    text = report(host, FINDINGS, VERDICT, context())
    assert [secret for secret in SECRETS if secret in text] == []
    assert "\x1b" not in text
    assert "the last line\n" in text
    assert "KeyError" in text
    assert f"jlr {__version__}, Python 3." in text
    assert "dgx: failed   engine: token=*** -> restart it\n" in text
    assert "verdict: engine: it does not run\n" in text
    if host:
        assert "runtime = docker ([hosts.dgx])" in text
        assert "env = WORD=*** ([hosts.dgx])" in text
        assert "link to dgx: jlr 1.0\n" in text
    assert os.environ["HOME"] not in text


def test_a_report_has_the_end_of_a_long_log_only() -> None:
    log = LinkFiles("dgx", None).log
    log.write_text("".join(f"line {number}.\n" for number in range(1000)), encoding="utf-8")
    text = report("dgx", (), VERDICT, context())
    assert "line 999." in text
    assert text.count("line ") == LINES


def test_a_report_can_be_made_without_any_log_and_of_wrong_settings(tmp_path: Path) -> None:
    (tmp_path / "jlr" / "config.toml").write_text("[hosts", encoding="utf-8")
    text = report("other", (), VERDICT, context())
    assert "is not valid TOML" in text
    assert "cannot read it: no such file" in text
