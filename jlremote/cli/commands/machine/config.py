"""`jlr config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import command
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.errors import JlrError, Usage

if TYPE_CHECKING:
    from jlremote.storage.settings import Origin

_HEADINGS = ("OPTION", "VALUE", "FROM")
_NEW_FILE = """\
# Settings of jlr. Keys are the names of the long options; `jlr config HOST` shows what holds.
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
        "jlr config                        # what holds on every host",
        "jlr config dgx                    # what holds on this one",
        "jlr config dgx --profile nvidia   # and with a profile",
        "jlr config dgx --json | jq '.[] | select(.option == \"image\")'",
        "jlr config --edit",
        'cat "$(jlr config --path)"',
    ),
)
@click.argument("host", required=False, shell_complete=candidates.hosts)
@click.option(
    "--profile", shell_complete=candidates.profiles, help="Show it as with this --profile."
)
@click.option("--path", is_flag=True, help="Print where the file is, and nothing else.")
@click.option("--edit", is_flag=True, help="Open the file in your editor (VISUAL, EDITOR).")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def config(host: str | None, profile: str | None, path: bool, edit: bool, as_json: bool) -> None:
    """Show the settings that hold, and where each came from.

    A flag wins over JLR_<OPTION> in the environment, that over [hosts.HOST], [profiles.PROFILE] and
    [defaults] of the file. Of lists each item stands alone: they add up.
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
    """Open the file in the person's editor; one with hints, if there is none yet."""
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_NEW_FILE, encoding="utf-8")
        click.edit(filename=str(file))
    except OSError as failure:
        raise JlrError(f"cannot write `{file}`: {failure.strerror}") from failure
    except click.ClickException as failure:
        raise Usage(
            f"no editor: {failure.message}", hint=f"set VISUAL or EDITOR; the file is `{file}`"
        ) from failure
