"""Every module that writes local files or starts local programs is known, with its reason.

A file's name may come from the far side only by `untrusted.local_name`. Content is written by
`laptop/paths`, which overwrites nothing that it was not told to. A far value reaches a program only
where it is no option, no host of a URL and no text of a shell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.sources import calls, here, known, nodes

# Who writes, and why no far value decides where. Content goes through `laptop.paths` only.
WRITERS = {
    "laptop.paths": "the one writer of files: whole, or new and over nothing",
    "laptop.record_files": "removes records, whose names are quoted",
    "laptop.sessions": "removes its trial file, of a fixed name",
    "editors.editor_keys": "a lock of a fixed name",
    "kernels.specs": "removes a spec's folder, by a name that it listed there",
    "ssh.trust.known_hosts": "appends a line to the file that ssh's configuration names",
    "cli.boundary": "opens the null device",
    "cli.keyboard.prompts": "opens the terminal",
    "link.client.link": "a file of the link, named by a hash (`link.wire.link_files`)",
    "link.mount_streams": "a socket of the link, likewise",
    "link.connection.login_look": "likewise",
    "link.client.call": "likewise, and the log of the link or follower (`cli.options.shared`)",
    "link.service.link_process": "likewise; opens the null device, and the link's log",
    "editors.ssh_config": "the user's own file and ours, of fixed names",
    "forwards.browser": "removes redirect files, named by a local port",
    "mounts.mount": "the folder that the person named",
    "mounts.known_mounts": "the folder that the person named",
    "sessions.start": "a lock, named by a hash",
    "sessions.further_ports": "a lock, whose name is quoted",
    "demo.demo": "a lock of a fixed name",
    "copies": "`jlr cp` has rules of its own for what it fetches",
    "demo.own_files": "a folder for temporary files, fixed names in it, and the demo's own",
}
# Who starts programs of the laptop, and where their words come from.
STARTERS = {
    "cli.commands.this_machine": "the editor of VISUAL or EDITOR: jlr's own path",
    "laptop.desktop": "osascript: far texts follow the script's name, where no option can be",
    "link.client.call": "the link: host and configuration, as typed",
    "mounts.system": "sshfs, fusermount, umount: see `mounts.sshfs`, and folders behind `--`",
    "mounts.sshfs": "sshfs: an absolute path behind a host, and `fsname` with its commas escaped",
    "ssh.config.ssh_settings": "`ssh -G`: a host behind `--`",
    "ssh.transport.server_socket": "the command of ssh's configuration, with names that ssh takes",
    "editors.code": "an editor: a folder that `absolute_path` lets through, quoted",
    "editors.ssh_config": "`ssh -G`: jlr's own words",
    "forwards.browser": "a browser: jlr's own file or page; the URL is in that",
    "forwards.loopback_page": "jlr's page: the URL on stdin",
    "agents.mcp_server": "jlr on its leash: an agent's words, its code on stdin",
    "kernels.lab": "JupyterLab: words as typed; its URL has a quoted path",
    "kernels.bridge": "the end of a kernel: an id that `argument` lets through",
    "demo.loopback_host": "the demo's host: what its own link sends it",
}
# Who makes local names of far ones.
NAMED = {"output.notebook_copy", "output.runs", "kernels.specs"}
CHANGING = {
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree", "unpack_archive"},
    "os": {
        *("replace", "rename", "renames", "link", "symlink", "mkdir", "makedirs", "mkfifo"),
        *("mknod", "truncate", "unlink", "remove", "rmdir", "removedirs", "chmod", "chown"),
    },
    "tempfile": {"mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"},
    "sqlite3": {"connect"},
    "zipfile": {"ZipFile"},
    "tarfile": {"open", "TarFile"},
}
# Of `pathlib.Path`, and of archives.
METHODS = {
    *("write_text", "write_bytes", "mkdir", "touch", "symlink_to", "hardlink_to", "rename"),
    *("unlink", "rmdir", "chmod", "extract", "extractall"),
}
NAMES = {"FileLock", "RotatingFileHandler", "FileHandler", "mkdtemp", "mkstemp"}
WRITE_FLAGS = re.compile("O_(CREAT|WRONLY|RDWR|TRUNC|APPEND)|[a-z_]+(?= [|])")
STARTING = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput"},
    "webbrowser": {"get", "open", "open_new", "open_new_tab", "BackgroundBrowser"},
    "click": {"edit", "launch"},
    "pty": {"spawn", "fork"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
}
OF_OS = ("exec", "spawn", "posix_spawn", "startfile", "system", "popen")


def writers(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that make, change or remove a local file."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and is_writer(node):
            yield ast.unparse(node.func)


def is_writer(call: ast.Call) -> bool:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if name in NAMES or name in CHANGING.get(owner, ()):
        return True
    if owner in CHANGING:
        return name == "open" and WRITE_FLAGS.search(ast.unparse(call.args[1])) is not None
    if name == "open":
        return writes(call, at=1 if owner in ("", "io") else 0)
    if name == "replace":  # that of a text takes two
        return bool(owner) and len(call.args) == 1 and not call.keywords
    if owner in ("formatter", "super()"):  # of help
        return False
    return bool(owner) and name in METHODS


def writes(call: ast.Call, *, at: int) -> bool:
    modes = [*call.args[at : at + 1], *(word.value for word in call.keywords if word.arg == "mode")]
    texts = (mode.value for mode in modes if isinstance(mode, ast.Constant))
    return any(isinstance(text, str) and set(text) & set("wax+") for text in texts)


def starters(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that start a program."""
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.module not in STARTING.keys() - {"asyncio", "click"}, "import the module"
        if isinstance(node, ast.Call):
            owner, _, name = ast.unparse(node.func).rpartition(".")
            if name in STARTING.get(owner, ()) or (owner == "os" and name.startswith(OF_OS)):
                yield f"{owner}.{name}"


@pytest.mark.parametrize(("find", "table"), [(writers, WRITERS), (starters, STARTERS)])
def test_each_module_that_writes_files_or_starts_programs_is_known_with_its_reason(
    find: Callable[[ast.AST], Iterator[str]], table: dict[str, str]
) -> None:
    found = {name: calls for name, tree in here() if (calls := sorted(set(find(tree))))}
    assert {name: calls for name, calls in found.items() if not known(name, table)} == {}
    assert {each for each in table if not any(known(name, (each,)) for name in found)} == set()


def test_far_names_of_local_files_pass_the_door() -> None:
    assert {name for name, call in calls() if ast.unparse(call.func) == "local_name"} == NAMED


def test_no_far_value_goes_through_a_shell() -> None:
    """A proxy command does, which the person wrote; it starts the shell by its name."""
    assert {
        name for name, call in calls() if any(word.arg == "shell" for word in call.keywords)
    } == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open(x, 'w')", True),
        ("open(x)", False),
        ("path.open('xb')", True),
        ("os.open(x, os.O_WRONLY | os.O_CREAT)", True),
        ("os.open(x, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0))", False),
        ("draft.replace(path)", True),
        ("text.replace('a', 'b')", False),
        ("os.replace(a, b)", True),
        ("shutil.copyfileobj(a, b)", False),
        ("(folder / name).write_bytes(data)", True),
        ("archive.extractall(path)", True),
    ],
)
def test_writers_are_found(source: str, *, found: bool) -> None:
    """A check that finds nothing would always pass."""
    assert bool(list(writers(ast.parse(source)))) is found


@pytest.mark.parametrize(
    "source", ["subprocess.run(a)", "os.execve(a, b, c)", "webbrowser.get(a)", "os.startfile(a)"]
)
def test_starters_are_found(source: str) -> None:
    assert list(starters(ast.parse(source)))
