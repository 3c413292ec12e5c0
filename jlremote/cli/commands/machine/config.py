"""`jlr config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.options.shared import json_option, optional_host_argument
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.errors import JlrError, Usage

if TYPE_CHECKING:
    from jlremote.storage.settings import Origin

_HEADINGS = ("OPTION", "VALUE", "FROM")
_NEW_FILE = """\
# Settings of jlr. Keys are the names of long options; `jlr config HOST` shows their values.
#
# [defaults]
# browser = "firefox"
#
# [profiles.torch]
# image = "nvcr.io/nvidia/pytorch:24.05-py3"
# shm-size = "8g"
#
# [hosts.dgx]
# profile = "torch"
# volume = ["/raid/me:/data"]
"""


@command(
    "config",
    examples=(
        "jlr config                        # the settings for every host",
        "jlr config dgx                    # the settings for dgx",
        "jlr config dgx --profile nvidia   # and with a profile",
        "jlr config dgx --json | jq '.[] | select(.option == \"image\")'",
        "jlr config --edit",
        'cat "$(jlr config --path)"',
    ),
)
@optional_host_argument
@click.option(
    "--profile",
    metavar="PROFILE",
    shell_complete=candidates.profiles,
    help="Show the settings with this --profile.",
)
@click.option("--path", is_flag=True, help="Print only the path of the file.")
@click.option("--edit", is_flag=True, help="Open the file in your editor (VISUAL, EDITOR).")
@json_option("Print a JSON array.")
def config(host: str | None, profile: str | None, path: bool, edit: bool, as_json: bool) -> None:
    """Show the settings and the source of each.

    A flag wins over JLR_<OPTION> in the environment, which wins over [hosts.HOST],
    [profiles.PROFILE] and [defaults] in the file. Lists add up; each item has a line.
    """
    from jlremote.storage import settings

    file = settings.config_file()
    if path:
        answer(str(file))
        return
    if edit:
        _edit(file)
    origins = settings.load().origins(host, {"profile": profile})
    if edit:
        return
    if as_json:
        answer_json([_entry(origin) for origin in origins])
    else:
        _show(origins)


def _entry(origin: Origin) -> dict[str, Any]:
    return {"option": origin.option, "value": origin.value, "from": origin.place}


def _show(origins: list[Origin]) -> None:
    from jlremote.cli.screen import tables
    from jlremote.storage.options import KINDS

    rows = [(origin.option, _in_words(origin.value), origin.place) for origin in origins]
    settled = {origin.option for origin in origins}
    unset = [(option, "-", "-") for option in KINDS if option not in settled]
    tables.show_table(_HEADINGS, [*rows, *unset])


def _in_words(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _edit(file: Path) -> None:
    """Open the file in an editor; a new one has an example."""
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_NEW_FILE, encoding="utf-8")
        click.edit(filename=str(file))
    except OSError as failure:
        raise JlrError(f"cannot write `{file}`: {failure.strerror}") from failure
    except click.ClickException as failure:
        raise Usage(
            f"cannot edit `{file}`: {failure.message}", hint="set VISUAL or EDITOR to an editor"
        ) from failure
