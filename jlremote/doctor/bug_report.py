"""The report of `jlr doctor --report`: what helps to find a bug, without secrets."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from jlremote import __version__
from jlremote.doctor.diagnosis import Finding, Verdict
from jlremote.errors import JlrError
from jlremote.hosts.context import Context, known_way
from jlremote.laptop import paths
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import KINDS
from jlremote.link.wire.link_files import LinkFiles
from jlremote.text import one_line, printable, reason_of, redacted
from jlremote.times import utc

LINES = 200  # of each log, the latest
LINE_LENGTH = 1000
LOGS = 2  # of each kind, the latest


def report(
    host: str | None, findings: Sequence[Finding], verdict: Verdict, context: Context
) -> str:
    """Return the report: versions, findings, settings for `host`, and the ends of logs."""
    python = f"Python {platform.python_version()} at {sys.executable}"
    versions = f"jlr {__version__}, {python}, {platform.platform()}"
    told = (
        f"{found.group}: {found.mark:<8} {found.check}: {one_line(found.text)}"
        + "".join(f" -> {one_line(line)}" for line in found.mend)
        for found in findings
    )
    logs = list[Path]()
    with suppress(JlrError):
        logs = _latest("link-*.log")
        if host is not None:
            logs = [LinkFiles(host, known_way(host, context).ssh_config).log]
        logs += _latest("bug-*.log")
    sections = {
        f"jlr report of {utc(time.time())}": [versions],
        "findings": [*told, f"verdict: {one_line(verdict.text)}"],
        "settings": [*_settings(host)],
        **{f"end of {log}": _end(log) for log in logs},
    }
    text = ""
    for title, lines in sections.items():
        shown = "".join(f"{printable(line)[:LINE_LENGTH]}\n" for line in lines)
        text += f"## {title}\n\n{shown}\n"
    return redacted(text).replace(f"{Path.home()}{os.sep}", f"~{os.sep}")


def _settings(host: str | None) -> Iterator[str]:
    try:
        origins = settings.load().origins(host, {})
    except JlrError as wrong:
        yield wrong.message
        return
    for origin in origins:
        if origin.place != "built in":
            value = str(origin.value)
            if origin.option == "env":
                value = f"{value.partition('=')[0]}=***"
            elif KINDS[origin.option] == "words":
                value = "***"
            yield f"{origin.option} = {value} ({origin.place})"


def _latest(pattern: str) -> list[Path]:
    logs = paths.log_directory().glob(pattern)
    return sorted(logs, key=lambda path: path.stat().st_mtime, reverse=True)[:LOGS]


def _end(log: Path) -> list[str]:
    try:
        return log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]
    except OSError as failure:
        return [f"cannot read it: {reason_of(failure)}"]
