"""The leash: what an agent may do that a person has held to one session (`JLR_LEASH`, `--leash`).

It refuses every command and option that is not listed here, so that a new one is refused, too.
`laptop.typed_place` refuses any other session, wherever a word is looked up. It is no sandbox: who
has a shell of this user can take the leash off.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from jlremote.laptop.record_files import matching
from jlremote.laptop.typed_place import TypedPlace, leash, off_leash, with_path

# By command, the parameters that may be given, and those that may name a file of this machine.
ALLOWED = {
    "cp": ("recursive preserve", "paths"),
    "exec": ("code notebook timeout no_wait interrupt json_lines", "session file out sync"),
    "gpus": ("host watch", ""),
    "job logs": ("job follow tail since", ""),
    "list": ("place watch", ""),
    "logs": ("session follow tail since container", ""),
    "mcp": ("session", ""),
    "output": ("session notebook follow tail", "save"),
    "run": ("place notebook parameters kernel inside back name detach", "sync"),
    "sync": ("overwrite watch dry_run", "local target"),
    "wait": ("typed what timeout", ""),
}
_ANYWHERE = {"color", "json", "leash", "no_input", "quiet", "verbose"}
# What without a place would tell of every session, or asks for a host.
_PLACES = {"gpus": "host", "list": "place"}


def hold(context: click.Context) -> None:
    """Refuse what the leash of this process, if there is one, does not allow (`JlrError`)."""
    only, path = leash(), str(context.command.name)
    if only is None:
        return
    if path not in ALLOWED:
        raise off_leash(f"`jlr {path}` is not for agents", only)
    names, files = (set(text.split()) for text in ALLOWED[path])
    typed_in: click.Context | None = context
    while typed_in is not None:  # what was typed before the command's name, too
        for option in typed_in.command.params:
            typed = typed_in.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
            if typed and option.name not in names | files | _ANYWHERE:
                raise off_leash(f"`jlr {path} {option.opts[0]}` is not for agents", only)
        typed_in = typed_in.parent
    given = [context.params[name] for name in files] + ["." if path == "sync" else None]
    for each in filter(None, given):
        for word in each if isinstance(each, tuple) else (each,):
            _check_file(word, only)
    place = _PLACES.get(path, "")
    if place and context.params[place] in (None, path == "gpus" and only.host):
        context.params[place] = f"{only.host}/{only.name}"


def _check_file(word: Any, only: TypedPlace) -> None:
    here = Path.cwd().resolve()
    if word == "-" or (only.session and matching([only.session], str(word))):
        return
    if not (here / Path(word).expanduser()).resolve().is_relative_to(here):
        raise off_leash(f"`{word}` is not below the current folder", only)
    if Path.home().resolve().is_relative_to(here) and not with_path(str(word)):
        raise off_leash(f"the current folder, `{here}`, is not that of a project", only)
