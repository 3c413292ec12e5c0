"""The archive with `waiter_program`, and the shell text that runs it in a host's own Python."""

from __future__ import annotations

import base64
import importlib.resources
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

NO_PYTHON = 69  # sysexits.h: EX_UNAVAILABLE
OLDEST = (3, 8)
# `waiter_program` and all of ours that it imports.
MODULES = (
    "errors",
    "text",
    "times",
    "untrusted",
    *(f"host/{name}" for name in ("answers", "contract", "process_mark", "shell_text", "sudo")),
    *(
        f"gpus/{name}"
        for name in (
            *("assigned", "choice", "inventory", "leases", "mig", "request", "snapshot"),
            *("snapshot_script", "usage", "wait_queue"),
            *("waiting/placeholders", "waiting/taking", "waiting/waiter_program"),
        )
    ),
)
_MAIN = """\
import sys
from jlremote.gpus.waiting.waiter_program import main
sys.exit(main(sys.argv[1], sys.argv[2:]))
"""
_IS_NEW_ENOUGH = f"import sys; sys.exit(sys.version_info < {OLDEST})"
_UNPACK = "import base64, sys; sys.stdout.buffer.write(base64.b64decode(sys.stdin.read()))"

# Sets `$python`. On hosts with an old `python3` a newer one often has the number in its name.
FIND_PYTHON = f"""\
for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8 no
do "$python" -I -c '{_IS_NEW_ENOUGH}' 2>/dev/null && break; done
[ "$python" != no ] || exit {NO_PYTHON}
python=$(command -v "$python")
"""
# Becomes the waiter, with the command that it is to become behind this text.
BECOME = """\
read -r python <"$directory/.python"
exec "$python" -I "$directory/.waiter" "$directory" """


def put(plan: Mapping[str, Any]) -> str:
    """Return the shell text that puts a waiter and its plan into `$directory`, as files."""
    packed = base64.encodebytes(_packed()).decode("ascii")
    return f"""\
printf '%s\\n' "$python" >"$directory/.python"
"$python" -I -c '{_UNPACK}' >"$directory/.waiter" <<'jlr-archive-end'
{packed}jlr-archive-end
cat >"$directory/.wait" <<'jlr-plan-end'
{json.dumps(plan)}
jlr-plan-end
"""


def _packed() -> bytes:
    packed, sources = io.BytesIO(), importlib.resources.files("jlremote")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _MAIN)
        # Those of the folders import what the program does not need.
        for folder in ("", "host/", "gpus/", "gpus/waiting/"):
            archive.writestr(f"jlremote/{folder}__init__.py", "")
        for module in MODULES:
            text = (sources / f"{module}.py").read_text("utf-8")
            archive.writestr(f"jlremote/{module}.py", text)
    return packed.getvalue()
