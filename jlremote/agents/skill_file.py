"""`jlr agent install`: the file from which a coding agent learns to use jlr.

Sources: https://agentskills.io/specification, https://code.claude.com/docs/en/skills,
https://developers.openai.com/codex/skills, https://cursor.com/docs/context/skills
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.laptop import paths

# By agent, the folder in the home folder or in a project, below which it looks for skills.
FOLDERS = {"claude": ".claude", "codex": ".agents", "cursor": ".cursor"}
_MARK = "<!-- written by `jlr agent install` -->"  # a line of `skill.md`


def text() -> str:
    """Return what an agent is told."""
    return (importlib.resources.files(__package__) / "skill.md").read_text("utf-8")


def install(agent: str, folder: Path) -> Path:
    """Write the file for an agent, below the home folder or a project's, and return its path.

    Raises:
        JlrError: another file is there, which jlr has not written.
    """
    path = folder / FOLDERS[agent] / "skills/jlr/SKILL.md"
    if path.exists() and _MARK not in path.read_text("utf-8", errors="replace").splitlines():
        raise JlrError(f"`{path}` was not written by jlr", hint="move it away and try again")
    paths.write_whole(path, text(), mode=0o644)
    return path
