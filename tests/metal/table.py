"""The table of docs/gpus.md, from what pytest wrote: `table.py RESULTS.xml CARDS >docs/gpus.md`."""

from __future__ import annotations

import ast
import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

ROWS = Path(__file__).with_name("test_rows.py")
RUNTIMES = ("podman", "docker", "apptainer")
SIGNS = {"failure": "**failed**", "error": "**failed**", "skipped": "not run"}
HEAD = """\
# GPUs in containers, on real cards

`tests/metal/run` ran these rows on a machine that `tests/metal` had made a host (podman with CDI,
docker with `--gpus`, Apptainer with `--nv`), and wrote this page. {date}: {cards}.

| | podman | docker | Apptainer |
|---|---|---|---|
"""


def results(file: str) -> dict[str, dict[str, str]]:
    """Return what became of each test, by its name and the runtime that it names, if any."""
    ends: dict[str, dict[str, str]] = {}
    for case in ElementTree.parse(file).iter("testcase"):
        name, _, runtime = case.get("name", "").partition("[")
        kinds = [SIGNS[part.tag] for part in case if part.tag in SIGNS]
        ends.setdefault(name, {})[runtime.rstrip("]") or "podman"] = (kinds or ["yes"])[0]
    return ends


def main() -> None:
    file, cards = sys.argv[1:]
    ends = results(file)
    print(HEAD.format(date=f"{datetime.now(UTC):%Y-%m-%d}", cards=cards), end="")
    for node in ast.parse(ROWS.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name in ends:
            ways = (ends[node.name].get(runtime, "") for runtime in RUNTIMES)
            print(f"| {(ast.get_docstring(node) or node.name).rstrip('.')} | {' | '.join(ways)} |")


if __name__ == "__main__":
    main()
