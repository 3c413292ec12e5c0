"""Programs that are sent: whole, from memory, and no byte of their input is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jlremote.remote import sending

# Uses modules of ours that import others, from two packages.
_PROBE = "jlremote.gpus.snapshot"


def test_a_program_has_all_modules_that_its_main_one_imports(tmp_path: Path) -> None:
    text = sending.program(_PROBE)
    assert text.isascii()
    assert "jlremote.untrusted" in text
    (tmp_path / "program.py").write_text(text)
    code = text.replace("sys.exit(", "print(").replace(".main(sys.argv[1:])", ".__name__")
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == (f"{_PROBE}\n", "")
