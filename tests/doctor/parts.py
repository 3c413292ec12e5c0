"""What `jlr doctor --json` printed, and how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.lab.laptop import Laptop

SECONDS = 240  # a container, a JupyterLab and a kernel, beside other work


@dataclass(frozen=True)
class Report:
    """One call.

    Attributes:
        status: its exit status.
        printed: the object that it printed.
    """

    status: int
    printed: dict[str, Any]

    def of(self, check: str) -> dict[str, Any]:
        """Return what was found of one check."""
        (found,) = [c for c in self.printed["checks"] if c["check"] == check]
        return dict(found)

    def marks(self, mark: str) -> list[str]:
        """Return the checks that ended so."""
        return [check["check"] for check in self.printed["checks"] if check["mark"] == mark]

    def failed(self, check: str, status: int, *words: str) -> None:
        """Check that this is where the chain is broken, and what is advised."""
        assert self.marks("failed")[:1] == [check], self.printed
        assert self.status == self.printed["exit_code"] == status, self.printed
        assert self.printed["verdict"] == "failed"
        found = self.of(check)
        for word in words:
            assert word in " ".join((found["text"], *found["mend"])), found


def examined(laptop: Laptop, *words: str) -> Report:
    """Run `jlr doctor`, which tells of everything on stdout and of nothing on stderr."""
    done = laptop.jlr("doctor", *words, "--json", "--no-input", timeout=SECONDS)
    assert done.stderr == "", done
    return Report(done.status, json.loads(done.stdout))
