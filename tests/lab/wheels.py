"""A package that pip installs without any index."""

from __future__ import annotations

import zipfile
from pathlib import Path

# For a container that has the wheel's folder at /wheels.
OFFLINE = ("-e", "PIP_NO_INDEX=1", "-e", "PIP_FIND_LINKS=/wheels")


def write_wheel(folder: Path) -> Path:
    """Write a wheel of `tiny` (its `VALUE` is 42) into a folder, and return the folder."""
    folder.mkdir(exist_ok=True)
    about = "tiny-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "VALUE = 42\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        kind = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", kind)
        record = ("tiny.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD")
        wheel.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in record))
    return folder
