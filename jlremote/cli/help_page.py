"""A page of help: `-h` shows what is used most, `--help` all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

# A name that is longer gets its line of the help below it, also at 80 columns.
_NAME_WIDTH = 26

# Stands for a hyphen while click breaks lines, which it would do in the middle of `--dry-run`.
_HYPHEN = "\N{NON-BREAKING HYPHEN}"


_TYPED = "jlremote.typed"


class HelpFormatter(click.HelpFormatter):
    """A formatter of help that breaks lines at spaces only."""

    def write_text(self, text: str) -> None:
        super().write_text(unbroken(text))

    def write(self, string: str) -> None:
        super().write(string.replace(_HYPHEN, "-"))


class CommandContext(click.Context):
    """Click's context, whose help is written by our formatter."""

    formatter_class = HelpFormatter


def keep_words(ctx: click.Context, words: Sequence[str]) -> None:
    """Keep the words of a command's line, up to `--`: its help depends on them."""
    ctx.meta[_TYPED] = words[: words.index("--")] if "--" in words else [*words]


def is_typed(ctx: click.Context, option: str) -> bool:
    """Return whether a command's line has this option, as far as help may know it."""
    return option in ctx.meta.get(_TYPED, ())


def wants_all(ctx: click.Context) -> bool:
    """Return whether all help is wanted, by `--help` and not by `-h`."""
    return is_typed(ctx, "--help")


def usage_line(ctx: click.Context) -> str:
    """Return how the command is called, in one line, without options."""
    pieces = ctx.command.collect_usage_pieces(ctx)[1:]
    return " ".join((ctx.command_path, *pieces)).replace(_HYPHEN, "-")


def unbroken(text: str) -> str:
    """Return a text whose lines click does not break at hyphens."""
    return text.replace("-", _HYPHEN)


def write_page(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    sections: Mapping[str, Sequence[tuple[str, str]]],
    examples: Sequence[str],
    closing: str,
) -> None:
    """Write the help of `-h`: usage, the first sentence, some options, some examples."""
    ctx.command.format_usage(ctx, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        text = " ".join((ctx.command.help or "").partition("\n\n")[0].split())
        formatter.write_text(text.partition(". ")[0].removesuffix(".") + ".")
    write_sections(formatter, sections)
    if examples:
        write_lines(formatter, "Examples", examples)
    formatter.write_paragraph()
    formatter.write_text(closing)


def write_sections(
    formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]
) -> None:
    """Write names and what they mean under headings, all in the same two columns."""
    names = [name for rows in sections.values() for name, _ in rows]
    width = max((len(name) for name in names if len(name) <= _NAME_WIDTH), default=0)
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                kept = [(f"{name:<{width}}", unbroken(text)) for name, text in rows]
                formatter.write_dl(kept, width)


def write_lines(formatter: click.HelpFormatter, title: str, lines: Sequence[str]) -> None:
    """Write a section of lines to copy, as they are."""
    with formatter.section(title):
        for line in lines:
            formatter.write(f"{' ' * formatter.current_indent}{line}\n")
