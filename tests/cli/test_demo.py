"""What `jlr demo` prints, and how it ends."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from jlremote.listing.session_report import SessionReport
from tests.cli.conftest import REPORT, URL, Jlr, Workflows


@pytest.fixture(autouse=True)
def taken_over(workflows: Workflows) -> None:
    workflows.take_over("demo.demo.demo")


def demo_that(ends: BaseException, *, when_ready: bool) -> Callable[..., None]:
    def demo(request: Any, context: Any, ready: Callable[[SessionReport], None]) -> None:
        if when_ready:
            ready(REPORT)
        raise ends

    return demo


def test_a_demo_prints_the_url_and_exits_with_0_after_ctrl_c(
    jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("demo.demo.demo", demo_that(KeyboardInterrupt(), when_ready=True))
    outcome = jlr("demo", "--no-browser")
    assert (outcome.code, outcome.stdout) == (0, URL + "\n")
    assert "Ctrl-C ends the demo" in outcome.stderr


def test_ctrl_c_before_the_demo_is_ready_exits_with_130(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("demo.demo.demo", demo_that(KeyboardInterrupt(), when_ready=False))
    assert jlr("demo", "--no-browser").code == 130


def test_a_demo_passes_on_its_options(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("demo.demo.demo", lambda request, context, ready: ready(REPORT))
    workflows.will("forwards.browser.open_in_browser", None)
    argv = ("demo", "--image", "torch", "--port", "9000", "--runtime", "docker", "--json")
    assert json.loads(jlr(*argv).stdout) == REPORT.to_json()
    request = workflows.arguments("demo.demo.demo")[0]
    assert (request.image, request.local_port, request.runtime) == ("torch", 9000, "docker")
