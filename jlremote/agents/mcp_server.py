"""`jlr mcp SESSION`: tools for one session, by the Model Context Protocol on stdin and stdout.

Each tool runs a command of jlr as a child, which inherits the leash (`JLR_LEASH`) of this process.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from inspect import cleandoc

from jlremote import __version__
from jlremote.errors import JlrError, TimeOver
from jlremote.output.runs import is_run
from jlremote.place.host.installation import beside_jlr

_PACKAGE = "'mcp>=2,<3'"
_MOST = 50_000  # characters of an answer
_INTERRUPT = signal.SIGTERM if sys.platform == "win32" else signal.SIGINT
_JLR = (sys.executable, "-P", "-m", "jlremote", "--no-input")


def serve(session: str) -> None:
    """Answer an agent until it closes stdin (`JlrError`: `mcp` is not installed here)."""
    if find_spec("mcp") is None:
        raise JlrError(
            "`jlr mcp` needs the package `mcp`, which is not installed here",
            hint=f"`{beside_jlr(_PACKAGE)}`",
        )
    from mcp.server import MCPServer

    about = f"Work in the session {session}: a container on a remote host, with a lasting kernel."
    server = MCPServer("jlr", instructions=about, version=__version__, log_level="WARNING")
    tools = _Tools(session)
    for name in [name for name in vars(_Tools) if not name.startswith("_")]:
        tool = getattr(tools, name)
        told = cleandoc(tool.__doc__).replace("SESSION", session)
        server.add_tool(tool, description=told, structured_output=False)
    server.run("stdio")


class _Tools:
    """The tools. Their docstrings are for the agent, with the session's name for SESSION."""

    def __init__(self, session: str) -> None:
        self._session = session

    async def status(self) -> str:
        """Show the state of SESSION as JSON: its container, GPUs, kernels and what they run."""
        return await _jlr("list", self._session, "--json")

    async def gpus(self) -> str:
        """Show all GPUs of the host as JSON, with their load, memory and users."""
        return await _jlr("gpus", "--json")

    async def exec(
        self, code: str = "", seconds: int = 45, notebook: str = "", interrupt: bool = False
    ) -> str:
        """Execute Python code in the lasting kernel of SESSION, or in that of a notebook.

        Variables stay from one call to the next. The answer is JSON with `run`, `status` and
        `outputs`. After `seconds` the code runs on: `wait` with that `run` waits for it, and
        `interrupt`, without code, interrupts it. Paths in the code are those of the session.
        """
        place = (self._session, *(("--notebook", notebook) if notebook else ()))
        if interrupt:
            return await _jlr("exec", *place, "--interrupt", "--json")
        return await _jlr("exec", *place, "-", "--timeout", f"{seconds}s", "--json", stdin=code)

    async def output(self, run: str = "", tail: int = 200) -> str:
        """Show the last lines that cells printed: all, or those of one `run` of `exec`."""
        return await _jlr("output", "--tail", str(tail), "--", *filter(None, [self._session, run]))

    async def run(self, command: str, name: str = "") -> str:
        """Run a shell command in SESSION as a job that lasts, and return at once.

        The answer is JSON with the job's `name`, for `wait` and `logs`.
        """
        named = ("--name", name) if name else ()
        words = ("--detach", "--json", *named, "--", "sh", "-c", command)
        return await _jlr("run", self._session, *words)

    async def wait(self, what: str, seconds: int = 45) -> str:
        """Wait for a `run` of `exec`, or for a job of `run` by its name, at most for some seconds.

        The answer is JSON with the `exit_code`. What does not end in time goes on: wait again.
        """
        target = f"{self._session}/{what}" if is_run(what) else what
        return await _jlr("wait", "--timeout", f"{seconds}s", "--json", "--", target)

    async def logs(self, job: str = "", tail: int = 100) -> str:
        """Show the last lines of a job's output, or without a job those of the Jupyter server."""
        return await _jlr("logs", "--tail", str(tail), "--", job or self._session)

    async def cp(self, source: str, target: str) -> str:
        """Copy a file or folder. In SESSION a path is SESSION:PATH, else below the current folder.

        The answer is JSON.
        """
        return await _jlr("cp", "--recursive", "--json", "--", source, target)


async def _jlr(*words: str, stdin: str = "") -> str:
    """Return what a command says (`ToolError`: it failed); a cancelled call ends as by Ctrl-C."""
    from mcp.server.mcpserver.exceptions import ToolError

    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *_JLR, *words, stdin=pipe, stdout=pipe, stderr=pipe
        )
    except (OSError, ValueError) as failure:  # too long an argument, or one with a NUL
        raise ToolError(f"the command cannot be run: {failure}") from failure
    try:
        answer, errors = await process.communicate(stdin.encode())
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):  # it has just ended
            process.send_signal(_INTERRUPT)
        raise
    text, why = _bounded(answer), _bounded(errors)
    if process.returncode not in (0, TimeOver.exit_code) and not text:
        raise ToolError(why)
    return f"{text}\nexit code {process.returncode}: {why}" if process.returncode else text


def _bounded(said: bytes) -> str:
    text = said.decode(errors="replace")
    left = f"[{len(text) - _MOST} characters before this are left out: ask for fewer lines]\n"
    return text if len(text) <= _MOST else left + text[-_MOST:]
