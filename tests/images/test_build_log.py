"""Which line of a Dockerfile failed, out of what three builders print."""

from __future__ import annotations

from jlremote.images.build_log import BuildLog

DOCKERFILE = """\
# syntax=docker/dockerfile:1
# a comment

ARG BASE=lab/plain
FROM ${BASE}
RUN true \\
    # in between

 && true
COPY . /srv
RUN false
"""


def after(text: str) -> BuildLog:
    log = BuildLog()
    log.take(text)
    log.finish()
    return log


def test_the_classic_builder_counts_instructions_and_we_lines() -> None:
    steps = ["Step 1/5 : ARG BASE=lab/plain", "Step 2/5 : FROM ${BASE}", "Step 3/5 : RUN true"]
    assert after("\n".join(steps)).failed_at(DOCKERFILE) == (6, "RUN true \\")
    steps += ["Step 4/5 : COPY . /srv", "Step 5/5 : RUN false", "The command … returned: 1"]
    assert after("\n".join(steps)).failed_at(DOCKERFILE) == (11, "RUN false")


def test_an_escape_directive_continues_lines() -> None:
    recipe = "# escape=`\nFROM x\nRUN a `\n  b\nRUN c\\\nRUN d\n"
    assert after("Step 4/4 : RUN d").failed_at(recipe) == (6, "RUN d")


def test_a_line_that_cannot_be_parsed_is_named() -> None:
    old = "Error response from daemon: dockerfile parse error line 5: unknown instruction: FORM"
    new = "ERROR: failed to solve: dockerfile parse error on line 5: unknown instruction: FORM"
    for text in (old, new):
        assert after(text).failed_at(DOCKERFILE) == (5, "FROM ${BASE}")


def test_buildkit_shows_the_line() -> None:
    text = (
        "------\n > [3/4] RUN false:\n------\nDockerfile:11\n--------------------\n"
        "   9 |      && true\n  10 |     COPY . /srv\n  11 | >>> RUN false\n"
        "--------------------\nERROR: failed to solve: process did not complete: exit code: 1\n"
    )
    assert after(text).failed_at(DOCKERFILE) == (11, "RUN false")


def test_without_a_step_or_mark_no_line_is_named() -> None:
    assert after("Cannot connect to the Docker daemon").failed_at(DOCKERFILE) is None


def test_the_builders_own_count_of_bytes_is_left_out() -> None:
    log = BuildLog()
    sending = "Sending build context to Docker daemon  2.048kB\n"
    assert log.take(f"{sending}Step 1/1 : FROM x\n begun") == "Step 1/1 : FROM x\n"
    assert log.finish() == " begun\n"
