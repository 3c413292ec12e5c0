"""`jlr output --save`: a copy of a notebook with the recorded outputs in its cells."""

from __future__ import annotations

import os
import posixpath
import shlex
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.jupyter.scripts import session_directory
from jlremote.laptop import paths
from jlremote.output import notebook, pieces
from jlremote.output.reading import Recorded, there
from jlremote.output.runs import Run
from jlremote.place.runtimes.table import runtime_of
from jlremote.text import one_line
from jlremote.untrusted import local_name, moment

MOST_BYTES = 256 << 20
READ_SECONDS = 600.0


@dataclass(frozen=True)
class Saved:
    """A copy that was written."""

    file: Path
    notebook: str  # its path below the server's root
    cells: int  # those that got the outputs of a run
    homeless: int  # runs whose cell is not in the notebook any more
    incomplete: int  # cells some of whose output was not recorded

    def to_json(self) -> dict[str, object]:
        return vars(self) | {"file": str(self.file)}


def check_destination(copy: Path, *, force: bool) -> None:
    """Check early that a copy can be written.

    Raises:
        Usage: it is there already, or its folder is not.
    """
    if copy.is_dir():
        return
    if os.path.lexists(copy) and not force:
        named = f"--save {shlex.quote(str(copy))} --force"
        raise Usage(f"`{copy}` exists", hint=f"`{named}` overwrites it")
    if not copy.parent.is_dir():
        raise Usage(
            f"there is no folder `{copy.parent}`",
            hint=f"`mkdir -p {shlex.quote(str(copy.parent))}` makes it",
        )


def save(recorded: Recorded, copy: Path, context: Context, *, force: bool) -> Saved:
    """Write a copy of the notebook, or of that of the latest run where several are recorded.

    Where `copy` is a folder the far side names the file, so nothing is overwritten there, whatever
    `force` says.

    Raises:
        NotFound: no cell of a notebook has run.
        Usage: the copy is there already.
    """
    names = [run.notebook for run in recorded.runs if run.notebook]
    if not names:
        raise NotFound("no cell of a notebook has run", hint="`jlr output` shows what was recorded")
    name = names[-1]
    if len(set(names)) > 1:
        context.progress.note(f"copying `{one_line(name)}`, which ran last")
    runs = [run for run in recorded.runs if run.notebook == name]
    if copy.is_dir():
        copy, force = copy / local_name(posixpath.basename(name), ".ipynb"), False
    check_destination(copy, force=force)
    with context.progress.step(f"Copy {one_line(name)}"):
        made = _filled(recorded, name, runs, context)
        text = notebook.text(made.content)
        if force:
            paths.write_whole(copy, text, mode=0o666)
        else:
            paths.write_new(copy, text)
    return Saved(copy, name, made.filled, made.homeless, made.incomplete)


def _filled(recorded: Recorded, name: str, runs: list[Run], context: Context) -> notebook.Copy:
    found = _fetch(recorded, name)
    if found is None:
        context.progress.note(
            f"`{one_line(name)}` cannot be read there, so the copy has only the cells that ran"
        )
        return notebook.of_runs(runs)
    saved_at, text = found
    return notebook.filled(notebook.read(text, one_line(name)), runs, saved_at)


def _fetch(recorded: Recorded, name: str) -> tuple[float, bytes] | None:
    """Return when the notebook was saved last, and its file; `None` if it cannot be read."""
    session, runtime = recorded.session, runtime_of(recorded.session)
    directory = session_directory(runtime, session.name)
    script = f"{directory}{pieces.notebook(name)}"
    ways = [there(session, script)]
    if runtime.in_jobs:  # its job may have ended
        ways.append(runtime.inside(session.name, script))
    inside = {"read": " || ".join(f"( {way} )" for way in ways)}
    done = recorded.host.run(inside, timeout=READ_SECONDS, limit=MOST_BYTES)["read"]
    date, _, text = done.stdout.partition("\n")
    saved_at = moment(date)
    return (
        (saved_at, text.encode("utf-8", "surrogateescape"))
        if done.status == 0 and saved_at is not None
        else None
    )
