"""`jlr agent install` and `jlr mcp`."""

from __future__ import annotations

from pathlib import Path

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.screen.terminal import answer


@command("agent install")
@click.argument("agent", required=False, type=click.Choice(("claude", "codex", "cursor")))
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
    from jlremote.agents import skill_file

    if agent is None:
        answer(skill_file.text(), newline=False)
    else:
        answer(str(skill_file.install(agent, Path.cwd() if project else Path.home())))


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
