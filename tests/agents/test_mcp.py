"""`jlr mcp` with the official client: its tools work in one session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from jlremote.agents import mcp_server
from jlremote.errors import JlrError
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import PROGRAMS, Laptop
from tests.sessions.parts import failed, started

if TYPE_CHECKING:
    from mcp import Client

Call = Callable[..., Awaitable[str]]
SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(600)"


def test_an_agent_works_in_one_session_by_its_tools_alone(
    laptop: Laptop, container: ContainerFactory
) -> None:
    # It takes a second to load, which each worker would take for its list of the tests.
    from mcp import Client, StdioServerParameters

    session = started(laptop, container())
    project = laptop.folder / "home" / "project"
    project.mkdir()
    (project / "a.txt").write_text("hello")
    server = StdioServerParameters(
        command=str(PROGRAMS / "jlr"),
        args=["mcp", session.name],
        env=laptop.environment,
        cwd=project,
    )

    async def connected() -> None:
        async with Client(server) as client:
            await work(client, session.name)

    asyncio.run(connected())
    assert session.laptop.jlr("list", session.name, "--json").status == 0  # nothing was stopped


async def work(client: Client, name: str) -> None:
    async def call(tool: str, **arguments: object) -> str:
        answer = await client.call_tool(tool, arguments)
        return "".join(getattr(each, "text", "") for each in answer.content)

    listed = (await client.list_tools()).tools
    assert len(listed) <= 8
    assert not [tool for tool in listed if "SESSION" in (tool.description or "")]
    assert json.loads(await call("status"))["state"] == "up"
    await call("exec", code="x = 40")
    assert "'42'" in str(json.loads(await call("exec", code="x + 2"))["outputs"])
    late = await call("exec", code=SLOW, seconds=10)
    run = json.loads(late[: late.index("\nexit code 7")])["run"]
    assert "not done after" in await call("wait", what=run, seconds=3)
    assert "begun" in await call("output", run=run)
    assert json.loads(await call("exec", interrupt=True))["notebook"] == "jlr-exec"
    assert exit_code(await call("wait", what=run)) == 1
    assert "KeyboardInterrupt" in await call("output", run=run)
    await cancelled(client, call)
    job = json.loads(await call("run", command="cat /proc/1/comm; echo $((6 * 7)); exit 3"))["name"]
    assert exit_code(await call("wait", what=job)) == 3
    assert (await call("logs", job=job)).endswith("\n42\n")
    assert "leashed" in await call("logs", job="lab/other")
    assert json.loads(await call("cp", source="a.txt", target=f"lab/{name}:/tmp/a.txt"))
    assert "'hello'" in str(json.loads(await call("exec", code="open('/tmp/a.txt').read()")))
    assert "is not below" in await call("cp", source="/etc/passwd", target=f"lab/{name}:/tmp/")
    assert "is leashed to" in await call("logs", job=f"--leash=lab/{name}2")
    assert "is leashed to" in await call("logs", job="-f"), "it would never end"
    assert "Argument list too long" in await call("run", command="x" * 200_000)


def exit_code(answer: str) -> object:
    """Return what `jlr wait --json` says of its only target."""
    return json.loads(answer.splitlines()[0])["exit_code"]


async def cancelled(client: Client, call: Call) -> None:
    """A call that the agent gives up interrupts its cell."""
    from mcp import MCPError

    with pytest.raises(MCPError, match="timed out"):
        await client.call_tool("exec", {"code": SLOW, "seconds": 300}, read_timeout_seconds=12)
    assert "'1'" in str(json.loads(await call("exec", code="1")))


def test_it_says_how_to_install_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "find_spec", lambda _: None)
    with pytest.raises(JlrError, match="needs the package `mcp`") as refused:
        mcp_server.serve("dgx/cont1")
    assert "install 'mcp>=2,<3'`" in str(refused.value.hint)


def test_an_answer_is_bounded_and_has_the_end() -> None:
    text = mcp_server._bounded(b"a" * 60_000 + b"end")
    assert len(text) < 50_100
    assert text.startswith("[10003 characters before this are left out")
    assert text.endswith("aend")


def test_no_session_is_no_server(laptop: Laptop) -> None:
    failed(laptop.jlr("mcp", "nothing"), 1, "the leash `nothing` is no session")
