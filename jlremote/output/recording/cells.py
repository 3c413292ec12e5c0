"""Which cell a request is of."""
# ruff: noqa: UP006, UP035, UP045 - Python 3.6 has no newer form of these

import os
from typing import Any, Dict, Optional

NOTES = 10000  # ids of cells that are kept


class Cells:
    """The ids of cells by request, as the server's process notes them; see `cell_notes`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.known: Dict[str, str] = {}
        self.file: Any = None

    def of(self, request: Optional[str]) -> Optional[str]:
        """Return the cell of a request, `None` where it was not told."""
        if request is not None and request not in self.known:
            self.read()
        return self.known.get(request or "")

    def read(self) -> None:
        """Read the notes that are new; the server begins another file when one is full."""
        while True:
            try:
                if self.file is None:
                    self.file = open(self.path, encoding="utf-8")  # noqa: SIM115
                for line in self.file:
                    request, _, cell = line.strip().partition(" ")
                    self.known[request] = cell
                if os.fstat(self.file.fileno()).st_ino == os.stat(self.path).st_ino:
                    break
                self.file.close()
                self.file = None
            except (OSError, ValueError):
                break
        while len(self.known) > NOTES:
            del self.known[next(iter(self.known))]
