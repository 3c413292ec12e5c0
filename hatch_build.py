"""Man pages, `docs/reference.md` and `completions/`, made from the commands and their help.

The build puts the man pages and the completion scripts into the wheel, where `pip install --prefix`
and pipx have them found. `python hatch_build.py` writes the reference and `completions/` anew.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
REFERENCE = ROOT / "docs" / "reference.md"
SCRIPTS = {"bash": "jlr.bash", "zsh": "_jlr", "fish": "jlr.fish", "powershell": "jlr.ps1"}
# Where a system's shells look for the scripts of programs.
COMPLETIONS = {
    "bash": "share/bash-completion/completions/jlr",
    "zsh": "share/zsh/site-functions/_jlr",
    "fish": "share/fish/vendor_completions.d/jlr.fish",
}

_HYPHENS = re.compile("[-\N{NON-BREAKING HYPHEN}]")  # a help has the second one in names
_ROFF = str.maketrans({"\\": r"\e", "'": r"\(aq", "`": r"\(ga", "~": r"\(ti", "^": r"\(ha"})
_SHORT = """\
# Reference

Each command with its options. `jlr COMMAND --help` and `man jlr-COMMAND` have more. This page is
made from the same text by `python hatch_build.py`.
"""


def _roff(text: str) -> str:
    safe = _HYPHENS.sub(r"\\-", text.translate(_ROFF))
    safe = re.sub(r"[^\0-\x7f]", lambda sign: f"\\[u{ord(sign[0]):04X}]", safe)
    return re.sub(r"(?m)^\.", r"\\&.", re.sub(r"\\\(ga(.+?)\\\(ga", r"\\fB\1\\fP", safe))


class ManPage(click.HelpFormatter):
    """Click's help as the source of a man page."""

    def write(self, string: str) -> None:
        """Write a line as it is: examples and exit codes."""
        self.buffer.append(f".nf\n{_roff(string)}.fi\n")

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.buffer.append(f".SH SYNOPSIS\n\\fB{_roff(prog)}\\fP {_roff(args)}\n.SH DESCRIPTION\n")

    def write_heading(self, heading: str) -> None:
        self.buffer.append(f".SH {_roff(heading.upper())}\n")

    def write_paragraph(self) -> None:
        """Write nothing: each heading begins a paragraph."""

    def write_text(self, text: str) -> None:
        for paragraph in text.split("\n\n"):
            self.buffer.append(f".PP\n{_roff(paragraph)}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], *_: Any, **__: Any) -> None:
        for name, meaning in rows:
            self.buffer.append(f".TP\n\\fB{_roff(name.strip())}\\fP\n{_roff(meaning)}\n")


class Short(click.HelpFormatter):
    """Click's help as a part of `docs/reference.md`: usage, first paragraph and options."""

    def write(self, string: str) -> None:
        """Write no examples."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        usage = _HYPHENS.sub("-", f"{prog} {args}")
        self.buffer.append(f"\n## {prog}\n\n```text\n{usage}\n```\n\n")

    def write_heading(self, heading: str) -> None:
        """Write no headings: an option says enough."""

    def write_text(self, text: str) -> None:
        self.buffer.append(" ".join(text.partition("\n\n")[0].split()) + "\n\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], *_: Any, **__: Any) -> None:
        for name, meaning in rows:
            self.buffer.append(_HYPHENS.sub("-", f"- `{name.strip()}`: {meaning}\n"))


def contexts(parent: click.Context | None = None) -> Iterator[click.Context]:
    """Yield the context of `jlr`, of each command that its help lists, and so on below groups."""
    from jlremote.cli.command import keep_words
    from jlremote.cli.program import jlr

    here = parent or click.Context(jlr, info_name="jlr", **jlr.context_settings)
    keep_words(here, ["--help"])
    yield here
    if isinstance(here.command, click.Group):
        for name in here.command.list_commands(here):
            found = here.command.get_command(here, name)
            if found is not None and not found.hidden:
                yield from contexts(click.Context(found, info_name=name, parent=here))


def man_pages() -> dict[str, str]:
    """Return the man pages by their file names, as `jlr-start.1`."""
    every = list(contexts())
    return {f"{_name(one)}.1": _man_page(one, every) for one in every}


def _man_page(context: click.Context, every: list[click.Context]) -> str:
    from jlremote import __version__

    page = ManPage()
    context.command.format_help(context, page)
    line = context.command.get_short_help_str(limit=200).rstrip(".")
    near = [other for other in every if context.parent is other or other.parent is context]
    return (
        f'.TH "{_roff(_name(context).upper())}" 1 "" "jlr {__version__}" "jlr"\n'
        f".SH NAME\n{_roff(_name(context))} \\- {_roff(line)}\n"
        f"{page.getvalue()}.SH SEE ALSO\n"
        + ", ".join(f"\\fB{_roff(_name(other))}\\fP(1)" for other in near)
        + "\n"
    )


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def reference() -> str:
    """Return `docs/reference.md`."""
    parts = [_SHORT]
    for context in contexts():
        part = Short()
        context.command.format_help(context, part)
        parts.append(part.getvalue())
    return "".join(parts)


def written() -> dict[Path, str]:
    """Return the files of the repository that are made here, with their texts."""
    from jlremote.cli.completion import shell_answers

    scripts = {ROOT / "completions" / name: shell for shell, name in SCRIPTS.items()}
    made = {path: shell_answers.script(shell) for path, shell in scripts.items()}
    return made | {REFERENCE: reference()}


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling's hook: man pages and completion scripts for the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them to a folder of this build, and name their places in the wheel."""
        sys.path.insert(0, self.root)
        from jlremote.cli.completion import shell_answers

        made = {f"share/man/man1/{name}": text for name, text in man_pages().items()}
        made |= {path: shell_answers.script(shell) for shell, path in COMPLETIONS.items()}
        self.folder = tempfile.TemporaryDirectory()
        for path, text in made.items():
            file = Path(self.folder.name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
            build_data["shared_data"][str(file)] = path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove that folder."""
        self.folder.cleanup()


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, "utf-8")
