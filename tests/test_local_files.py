"""Every module that writes local files is known, with where its names come from.

A file's name may come from the far side only by `untrusted.local_name`. Content is written by
`laptop/paths`, which overwrites nothing that it was not told to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.sources import here, known, nodes

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
    "mounts.unmount": "the folder that the person named",
    "sessions.start": "a lock, named by a hash",
    "sessions.further_ports": "a lock, whose name is quoted",
    "demo.demo": "a lock of a fixed name",
    "copies": "`jlr cp` has rules of its own for what it fetches",
    "demo.own_files": "a folder for temporary files, fixed names in it, and the demo's own",
}
# Who makes local names of far ones.
NAMED = {"output.notebook_copy", "output.rich_files", "kernels.specs"}
MODULES = {
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
WRITING = re.compile("O_(CREAT|WRONLY|RDWR|TRUNC|APPEND)|[a-z_]+(?= [|])")


def writers(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that make, change or remove a local file."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and is_writer(node):
            yield ast.unparse(node.func)


def is_writer(call: ast.Call) -> bool:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if name in NAMES or name in MODULES.get(owner, ()):
        return True
    if owner in MODULES:
        return name == "open" and WRITING.search(ast.unparse(call.args[1])) is not None
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


def test_each_module_that_writes_local_files_is_known_with_its_reason() -> None:
    found = {name: sorted(set(writers(tree))) for name, tree in here()}
    wrote = {name: calls for name, calls in found.items() if calls}
    assert {name: calls for name, calls in wrote.items() if not known(name, WRITERS)} == {}
    assert {each for each in WRITERS if not any(known(name, (each,)) for name in wrote)} == set()


def test_far_names_of_local_files_pass_the_door() -> None:
    through = {
        name
        for name, tree in here()
        for node in nodes(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "local_name"
    }
    assert through == NAMED


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
