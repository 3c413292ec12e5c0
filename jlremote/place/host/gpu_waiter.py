"""The waiter's program as a file of a job's folder, and the shell text that runs it there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jlremote.remote import sending

NO_PYTHON = sending.NO_PYTHON
OLDEST = (3, 8)  # which the modules of the program need
PROGRAM = "jlremote.gpus.waiting.waiter_program"

# Sets `$python`, or exits.
FIND_PYTHON = f"""\
{sending.find_python(OLDEST)}[ -n "$python" ] || exit {NO_PYTHON}
python=$(command -v "$python")
"""
# Becomes the waiter, with the command that it is to become behind this text.
BECOME = """\
read -r python <"$directory/.python"
exec "$python" -I "$directory/.waiter" "$directory" """


def put(plan: Mapping[str, Any]) -> str:
    """Return the shell text that puts a waiter and its plan into `$directory`, as files."""
    return f"""\
printf '%s\\n' "$python" >"$directory/.python"
cat >"$directory/.waiter" <<'jlr-program-end'
{sending.program(PROGRAM)}jlr-program-end
cat >"$directory/.wait" <<'jlr-plan-end'
{json.dumps(plan)}
jlr-plan-end
"""


def first_words(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a waiter with this plan tells first; that of a start names what it wants."""
    return {"why": plan["why"]} | ({"start": plan["gpus"]} if "hold" in plan else {})
