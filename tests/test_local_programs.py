"""Every module that starts a program of the laptop is known, with where its words come from.

A far value reaches one only where it is no option, no host of a URL and no text of a shell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.sources import here, known, nodes

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
MODULES = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput"},
    "webbrowser": {"get", "open", "open_new", "open_new_tab", "BackgroundBrowser"},
    "click": {"edit", "launch"},
    "pty": {"spawn", "fork"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
}
OF_OS = ("exec", "spawn", "posix_spawn", "startfile", "system", "popen")


def starters(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that start a program."""
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.module not in MODULES.keys() - {"asyncio", "click"}, "import the module"
        if isinstance(node, ast.Call):
            owner, _, name = ast.unparse(node.func).rpartition(".")
            if name in MODULES.get(owner, ()) or (owner == "os" and name.startswith(OF_OS)):
                yield f"{owner}.{name}"


def test_each_module_that_starts_a_program_is_known_with_its_words() -> None:
    started = {name: found for name, tree in here() if (found := sorted(set(starters(tree))))}
    assert {name: calls for name, calls in started.items() if not known(name, STARTERS)} == {}
    assert {each for each in STARTERS if not any(known(name, (each,)) for name in started)} == set()


def test_no_far_value_goes_through_a_shell() -> None:
    """A proxy command does, which the person wrote; it starts the shell by its name."""
    through = {
        name
        for name, tree in here()
        for node in nodes(tree)
        if isinstance(node, ast.Call) and any(word.arg == "shell" for word in node.keywords)
    }
    assert through == set()


@pytest.mark.parametrize(
    "source", ["subprocess.run(a)", "os.execve(a, b, c)", "webbrowser.get(a)", "os.startfile(a)"]
)
def test_starters_are_found(source: str) -> None:
    """A check that finds nothing would always pass."""
    assert list(starters(ast.parse(source)))
