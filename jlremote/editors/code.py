"""`jlr code`: an editor of this laptop on a session's folder, by the session's name for ssh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from jlremote.editors import ssh_config
from jlremote.editors.proxy import name_of
from jlremote.errors import JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.laptop import sessions
from jlremote.laptop.known_names import SUFFIX
from jlremote.laptop.windows import NOT_FROM_HERE
from jlremote.link.client.link import Link
from jlremote.place.host.contract import run_script, understood
from jlremote.place.host.shell_text import IN_FOLDER, command_line
from jlremote.place.runtimes.place import Place
from jlremote.place.runtimes.runtime import Attachment
from jlremote.selection.session_selection import place_of
from jlremote.untrusted import absolute_path

# The system's program for links of other programs, with what it wants before them.
_LINK_OPENER = {"darwin": ("open",), "win32": ("rundll32", "url.dll,FileProtocolHandler")}.get(
    sys.platform, ("xdg-open",)
)
_STDERR = 2  # of a process; stdout is the command's own answer


@dataclass(frozen=True)
class Editor:
    """An editor, and how its program opens a folder behind ssh."""

    title: str
    programs: tuple[str, ...]  # names of the program on this laptop, the likeliest first
    arguments: Callable[[str, str], tuple[str, ...]]  # of the name for ssh and the folder
    install: str  # what to install where it is missing


def _remote(name: str, folder: str) -> tuple[str, ...]:
    return ("--folder-uri", f"vscode-remote://ssh-remote+{name}{quote(folder)}")


def _address(name: str, folder: str) -> tuple[str, ...]:
    return (f"ssh://{name}{quote(folder)}",)


def _toolbox_link(name: str, folder: str) -> tuple[str, ...]:
    """Return a link of JetBrains Toolbox, which connects by OpenSSH's own client."""
    asked = {"h": name, "launchIde": "true", "ideHint": "PY", "projectHint": folder}
    link = f"jetbrains://gateway/ssh/environment?{urlencode(asked, safe='/', quote_via=quote)}"
    return (*_LINK_OPENER[1:], link)


EDITORS: Mapping[str, Editor] = {
    "vscode": Editor(
        "VS Code",
        ("code",),
        _remote,
        "install VS Code and then its extension:"
        " `code --install-extension ms-vscode-remote.remote-ssh`",
    ),
    "cursor": Editor("Cursor", ("cursor",), _remote, "install Cursor and its command `cursor`"),
    "windsurf": Editor(
        "Windsurf", ("windsurf",), _remote, "install Windsurf and its command `windsurf`"
    ),
    "pycharm": Editor(
        "PyCharm",
        _LINK_OPENER[:1],
        _toolbox_link,
        "install JetBrains Toolbox 2.6 or later, which opens PyCharm on other machines",
    ),
    "zed": Editor("Zed", ("zed", "zeditor"), _address, "install Zed and its command `zed`"),
}


@dataclass(frozen=True)
class OpenedFolder:
    """A folder, and the command that opens it in an editor."""

    name: str  # its host's, for ssh
    folder: str
    command: str  # the editor's, quoted for a shell
    opened: bool  # whether it was run


def code(
    where: str | None, path: str | None, editor: str, context: Context, *, only_shown: bool
) -> OpenedFolder:
    """Open an editor on a folder of a session or host, and return how.

    By default it is the folder in which its shells begin. With `only_shown` nothing is opened. What
    the editor prints goes to stderr.

    Raise `NotFound` if there is no such session or host, it does not run, or the editor is missing;
    `JlrError` if ssh does not know names below `.jlr` yet, or the editor failed.
    """
    kind = EDITORS[editor]
    host, place = place_of(where, context)
    folder = _folder(host, place, path)
    name = _ssh_name(place)
    arguments = kind.arguments(name, folder)
    program = next(filter(None, map(shutil.which, kind.programs)), None)
    if only_shown:
        command = command_line((kind.programs[0], *arguments))
        return OpenedFolder(name, folder, command, opened=False)
    if program is None:
        other = "or choose another editor by `--editor`"
        raise NotFound(f"{kind.title} is not installed here", hint=f"{kind.install}; {other}")
    if not ssh_config.is_installed():
        text = f"ssh does not know `*{SUFFIX}` yet, by which {kind.title} reaches a session"
        raise JlrError(text, hint="`jlr config ssh install` adds one line to ~/.ssh/config")
    argv = (program, *arguments)
    # An editor's terminals are the person's.
    env = {name: value for name, value in os.environ.items() if name != NOT_FROM_HERE}
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=_STDERR, env=env, check=False)
    if done.returncode != 0:
        raise JlrError(f"`{program}` exited with {done.returncode}", hint=kind.install)
    return OpenedFolder(name, folder, command_line(argv), opened=True)


def _folder(host: Link, place: Place, path: str | None) -> str:
    if path is not None and path.startswith("/"):
        return path
    # Editors want a path without `~`, which the shell there knows.
    argv = ("sh", "-c", f"{IN_FOLDER} && pwd", "sh", path or ".")
    script = command_line(place.runtime.attached(place.name, argv, Attachment(), {}))
    printed = run_script(host, script)
    if printed.status != 0:
        raise NotFound(f"`{place.selector}` has no folder `{path}`: {printed.complaint}")
    with understood("`pwd`"):  # what a container prints
        return absolute_path(printed.stdout.removesuffix("\n"))


def _ssh_name(place: Place) -> str:
    if place.is_host and place.selector != place.name:
        text = f"`{place.name}{SUFFIX}` is a session, so an editor cannot reach the host by it"
        raise Usage(text, hint=f"open the editor's own ssh connection to `{place.name}`")
    if place.session is None:
        host, slash, name = place.selector.rpartition("/")
        return f"{name}.{host}{SUFFIX}" if slash else f"{place.selector}{SUFFIX}"
    known = sessions.load_all()
    record = next(one for one in known if f"{one.host}/{one.name}" == place.selector)
    return name_of(record, known)
