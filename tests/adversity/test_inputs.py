"""Argument lists that nobody would type: no traceback, no bug (exit code 3), no hang.

Every command of the program gets its share, drawn with a fixed seed from its own parameters and
from values that are hostile to each. No host answers: links refuse at once.
"""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest

from tests.adversity.parts import CODES, MOST_SECONDS, bounded
from tests.cli.conftest import Jlr, jlr, laptop, process
from tests.cli.tree import COMMANDS, command
from tests.long import LONG, WANTED

__all__ = ["jlr", "laptop", "process"]

LISTS_EACH = 1000 if WANTED else 12
ENDLESS = {("list", "watch"), ("config show", "edit")}  # they wait for Ctrl-C, and for an editor

HOSTILE = (
    *("\x1b]52;c;aGk=\x07", "\x1b[2J", "\x9b31m", "\r", "\n", "a\nb", "\t", "\x7f", "\x01"),
    *("ü", "日本", "🚀", "e\u0301", "a\u202egnp", "\u200b", "\u2028", "\udcff", "\u2400", "%00"),
    *("-1", "0", "65536", "9" * 30, "1e308", "nan", "inf", "-0", "0x10", "١٢", "²", "1_0"),
    *("/nonexistent/x", "../..", "~", "~nobody/x", "/dev/null", ".", "a/b/c", "//", "/proc/1/x"),
    *("-", "--", "-x", "--no-such", "--help=1", "-vvvv", "--json=", "--=", "\u2212-json"),
    *("$(touch pwned)", "`id`", ";id", "'", '"', "%s%n", "{0}", "{user}", "\\", "*", "a b", "!"),
    *("a@b@c", "user@", "@host", "host:22", "[::1]", "ssh://x", "dgx/", "/cont1", "a" * 300),
    *("=", "A=", "=x", "a:b", ":", "a:b:c:d", "auto:0", "auto:-1", "0,0", "-1h", "1h1h"),
    *("", " ", "x" * 5000, "memlock=x"),
)
PLAIN = ("dgx", "cont1", "dgx/cont1", "8888", "docker", "none", "1h", "torch", "nvidia", "A=b")


def value(draw: random.Random) -> str:
    """Return a hostile value, and now and then a plain one, which leads further."""
    return draw.choice(HOSTILE) if draw.random() < 0.6 else draw.choice(PLAIN)


def option(parameter: click.Option, draw: random.Random) -> list[str]:
    name = draw.choice([*parameter.opts, *parameter.secondary_opts] or ["--"])
    if parameter.is_flag:
        return [name]
    if isinstance(parameter.type, click.Choice) and draw.random() < 0.5:
        return [name, str(draw.choice(parameter.type.choices))]
    return [f"{name}={value(draw)}"] if draw.random() < 0.4 else [name, value(draw)]


def arguments(name: str, draw: random.Random) -> list[str]:
    known = [each for each in command(name).params if (name, each.name) not in ENDLESS]
    options = [each for each in known if isinstance(each, click.Option)]
    chosen = draw.sample(options, draw.randint(0, min(4, len(options))))
    words = [option(parameter, draw) for parameter in chosen]
    words += [[value(draw)] for _ in range(draw.randint(0, 3))]
    draw.shuffle(words)
    plain = [draw.choice(PLAIN[:3])] if draw.random() < 0.5 else []
    return [*name.split(), *plain, *(word for group in words for word in group)]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_argument_list_is_a_bug_or_hangs(
    name: str, jlr: Jlr, no_host_answers: None, laptop: Path
) -> None:
    draw = random.Random(f"{name} 1")
    for _ in range(LISTS_EACH):
        argv = arguments(name, draw)
        with bounded(MOST_SECONDS):
            outcome = jlr(*argv)
        told = outcome.stdout + outcome.stderr
        assert outcome.code in CODES, (argv, outcome)
        assert "Traceback" not in told, (argv, outcome)
        assert outcome.code == 0 or told.strip(), argv
    written = list((laptop / "here").iterdir())
    assert written == [] or name == "doctor"  # `--report FILE`


@pytest.mark.parametrize(
    ("host", "code"), [("\udcff", 2), LONG("a\nb", 2), LONG("a..b", 6), ("u@-oProxyCommand=id", 2)]
)
def test_a_real_link_refuses_what_is_no_host(host: str, code: int, process: Jlr) -> None:
    outcome = process("--no-input", "--", "list", host)
    assert outcome.code == code, outcome
    assert "error: " in outcome.stderr
    assert "Traceback" not in outcome.stderr
