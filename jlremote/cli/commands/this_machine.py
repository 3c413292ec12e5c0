"""`jlr config`, `jlr demo`, `jlr completion`, `jlr agent install` and `jlr mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jlremote.cli.command import Invocation, command, option
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer, answer_either, answer_json, as_json, shown, tell
from jlremote.errors import JlrError, Usage

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.laptop.settings.settings import Origin
    from jlremote.listing.session_report import SessionReport

# By agent, the folder in the home folder or in a project, below which it looks for skills:
# https://agentskills.io/specification, https://code.claude.com/docs/en/skills,
# https://developers.openai.com/codex/skills, https://cursor.com/docs/context/skills
AGENTS = {"claude": ".claude", "codex": ".agents", "cursor": ".cursor"}
_MARK = "<!-- written by `jlr agent install` -->"  # a line of `skill.md`
_SHELLS = ("bash", "zsh", "fish", "powershell")
_NEW_FILE = """\
# Settings of jlr. Keys are the names of long options; `jlr config --all` lists them.
#
# [defaults]                          # also [hosts.NAME] and [profiles.NAME]
# host = "dgx"
# volume = ["/raid/me:/data"]
"""


@command("config show", json="Print a JSON array.")
@shared.optional_host_argument
@option("--all every", "Show also options that are not set.")
@option("--path", "Print only the path of the file.")
@option("--edit", "Open the file in your editor (VISUAL, EDITOR).")
def show_config(
    _invocation: Invocation, host: str | None, every: bool, path: bool, edit: bool
) -> None:
    """Show what is set, and the source of each setting.

    A flag wins over JLR_<OPTION> in the environment, which wins over [hosts.HOST],
    [profiles.PROFILE] and [defaults] in the file. Lists add up; each item has a line.

    Examples:
        jlr config                        # what is set for every host
        jlr config dgx --all              # every option, with what holds for dgx
        jlr config dgx --json | jq '.[] | select(.option == "image")'
    """
    from jlremote.laptop import paths
    from jlremote.laptop.settings import settings

    file = settings.config_file()
    if path:
        answer_either(str(file), {"path": str(file)})
        return
    if edit:
        if not file.exists():
            paths.write_whole(file.resolve(), _NEW_FILE)
        try:
            click.edit(filename=str(file))
        except click.ClickException as failure:
            hint = "set VISUAL or EDITOR to an editor"
            raise Usage(f"cannot edit `{file}`: {failure.message}", hint=hint) from failure
    origins = settings.load().origins(host, {})
    if as_json() and not edit:
        answer_json([{"option": o.option, "value": o.value, "from": o.place} for o in origins])
    elif not edit:
        _show(origins, every=every)


@command("config set")
@click.argument("setting", metavar="OPTION", shell_complete=candidates.settings)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@option("--host HOST", "Change the settings of this host.", shell_complete=candidates.hosts)
def set_config(
    _invocation: Invocation, setting: str, values: tuple[str, ...], host: str | None
) -> None:
    """Change a setting: in [defaults], or in [hosts.HOST].

    Several values make a list; without a value the setting is removed.

    Examples:
        jlr config set host dgx           # the host of commands without HOST
        jlr config set volume /raid/me:/data ~/hf:/hf --host dgx
        jlr config set gpus --host dgx    # remove it
    """
    from jlremote.gpus.choice import parse_request
    from jlremote.laptop.settings.setting_change import change

    table = ("hosts", host) if host else ("defaults",)
    if setting == "gpus" and len(values) == 1:
        parse_request(values[0])
    name = f"[{'.'.join(table)}]"
    file = change(table, setting, values)
    text = f"{setting} = {' '.join(values)}" if values else f"no {setting}"
    answer(f"{text} in {name} of {file}")


def _show(origins: list[Origin], *, every: bool) -> None:
    from jlremote.cli.screen import reports
    from jlremote.laptop.settings.options import KINDS

    words: dict[object, str] = {True: "yes", False: "no"}
    rows = [
        (o.option, words[o.value] if isinstance(o.value, bool) else str(o.value), o.place)
        for o in origins
        if every or o.is_set
    ]
    if every:
        settled = {origin.option for origin in origins}
        rows += [(option, "-", "-") for option in KINDS if option not in settled]
    if rows:
        reports.show_table(("OPTION", "VALUE", "FROM"), rows)
    else:
        tell("nothing is set; `jlr config --all` shows every option")


@command("config notify")
def notify(_invocation: Invocation) -> None:
    """Show a notice on the desktop of this machine, to try `--notify`.

    Without a desktop, the terminal's bell rings and its title shows the notice. With --notify, or
    `jlr config set notify true`, a notice tells the end of a job of `jlr run`, of a cell that ran
    longer than a minute and of a kernel that died, the GPUs of --wait, and a time limit fifteen
    minutes before. --no-record leaves out cells and kernels.

    Examples:
        jlr config notify
    """
    from jlremote.cli.screen.terminal import announce

    words = {
        "desktop": "a notice is on the desktop",
        "terminal": "this desktop shows no notices; the terminal's bell and title tell",
    }
    way = announce("jlr", "this is a test of notices")
    if way is None:
        hint = "run it in a terminal of your desktop"
        raise JlrError("there is neither a desktop nor a terminal to tell", hint=hint)
    answer(words[way])


@command("demo", json="Print the session as a JSON object.")
@option("--no-browser", "Print the URL and open no browser.")
def demo(context: Context, no_browser: bool) -> None:
    """Try jlr on this machine, without a server.

    It starts an SSH server on the loopback interface and a session behind it, as on any host, and
    opens a notebook. Ctrl-C or `jlr stop` ends it, and nothing is left but files that you made,
    which it moves to the folder for temporary files.

    Examples:
        jlr demo
    """
    from jlremote.demo import demo as workflow

    name = shared.chosen_browser(None, no_browser)
    running = False

    def ready(report: SessionReport) -> None:
        nonlocal running
        running = True
        answer_either(shown(report.address), report.to_json())
        shared.browse(report.address, context, browser=name, asked=False)
        context.progress.note("Ctrl-C ends the demo")

    try:
        workflow.demo(context, ready)
    except KeyboardInterrupt:
        if not running:
            raise


@command("completion")
@click.argument("shell", required=False, metavar="[SHELL]", type=click.Choice(_SHELLS))
@option("--install", "Write it where the shell finds it, and say what else it needs.")
def completion(_invocation: Invocation, shell: str | None, install: bool) -> None:
    """Print the completion script for your shell, or install it.

    SHELL is `bash`, `zsh`, `fish` or `powershell`; the default is the shell that runs this command.
    It completes commands, options, hosts, sessions and paths, and images and free GPUs of a
    host that is connected. Your startup files are not changed: the command that does it, where the
    shell needs it, is printed.

    Examples:
        jlr completion --install
        jlr completion fish > /usr/share/fish/vendor_completions.d/jlr.fish
    """
    from jlremote.cli.completion import shell_answers

    shell = shell or shell_answers.users_shell()
    if not install:
        answer(shell_answers.script(shell), newline=False)
        return
    file, command = shell_answers.install(shell)
    answer(f"wrote {file}")
    if command:
        answer(f"if a new {shell} does not complete `jlr`, run this once in it:\n\n    {command}\n")
    else:
        answer(f"each new {shell} completes `jlr`")


@command("agent install")
@click.argument("agent", required=False, type=click.Choice(tuple(AGENTS)))
@option("--project", "Write it to the current folder, and not to your home folder.")
def install(_invocation: Invocation, agent: str | None, project: bool) -> None:
    """Write a skill file, from which a coding agent learns to use jlr, or print it.

    It goes where Claude Code, Codex or Cursor looks for skills. `JLR_LEASH=SESSION` in the agent's
    environment holds it to that session; `jlr mcp SESSION` is for agents without a shell.

    Examples:
        jlr agent install claude
        jlr agent install codex --project     # for all who work in this folder
        jlr agent install                     # print it
    """
    if agent is None:
        answer(skill(), newline=False)
    else:
        answer(str(write_skill(agent, Path.cwd() if project else Path.home())))


def skill() -> str:
    """Return what an agent is told."""
    import importlib.resources

    return (importlib.resources.files("jlremote.agents") / "skill.md").read_text("utf-8")


def write_skill(agent: str, folder: Path) -> Path:
    """Write the skill file, if no other file is there, and return its path."""
    from jlremote.laptop import paths

    path = folder / AGENTS[agent] / "skills/jlr/SKILL.md"
    if path.exists() and _MARK not in path.read_text("utf-8", errors="replace").splitlines():
        raise JlrError(f"`{path}` was not written by jlr", hint="move it away and try again")
    paths.write_whole(path, skill(), mode=0o644)
    return path


@command("mcp")
@click.argument("session", shell_complete=candidates.sessions)
def mcp(_invocation: Invocation, session: str) -> None:
    """Give an agent tools for SESSION, by MCP on stdin and stdout; the agent's program runs this.

    They run code, commands and copies there, as `jlr --leash SESSION` allows, and nothing else.

    Examples:
        jlr mcp dgx/cont1         # the command of a server, for your agent's settings
    """
    from jlremote.agents import mcp_server
    from jlremote.laptop.typed_place import leash, take_leash

    take_leash(session)
    if only := leash():
        mcp_server.serve(f"{only.host}/{only.name}")
