"""`jlr agent install` and `jlr mcp`.

Where an agent looks for skills: https://agentskills.io/specification,
https://code.claude.com/docs/en/skills, https://developers.openai.com/codex/skills,
https://cursor.com/docs/context/skills
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

import click

from jlremote.cli.command import Invocation, command, option
from jlremote.cli.completion import candidates
from jlremote.cli.screen.terminal import answer
from jlremote.errors import JlrError

# By agent, the folder in the home folder or in a project, below which it looks for skills.
FOLDERS = {"claude": ".claude", "codex": ".agents", "cursor": ".cursor"}
_MARK = "<!-- written by `jlr agent install` -->"  # a line of `skill.md`


@command("agent install")
@click.argument("agent", required=False, type=click.Choice(tuple(FOLDERS)))
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
    return (importlib.resources.files("jlremote.agents") / "skill.md").read_text("utf-8")


def write_skill(agent: str, folder: Path) -> Path:
    """Write the skill file, if no other file is there, and return its path."""
    from jlremote.laptop import paths

    path = folder / FOLDERS[agent] / "skills/jlr/SKILL.md"
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
