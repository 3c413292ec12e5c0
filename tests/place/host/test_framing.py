"""Framing: a step's output comes back byte by byte, in any shell, and an odd answer is told."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.errors import JlrError, NoShell
from jlremote.place.host.contract import FIELD, GROUP, RECORD, OddAnswer, records, understood
from jlremote.place.host.framing import FromMarker, announced, ended_early, new_marker, run_steps
from jlremote.place.host.shell_text import command_line, until_hang_up
from tests.lab.programs import PATIENCE
from tests.place.host.shells import SHELLS, as_bytes, through

MARKER = "jlr-0123456789abcdef"
ANY_SHELL = pytest.mark.parametrize("shell", SHELLS)
# A shell's variables and arguments hold every byte but this one.
OUTPUT = st.binary(max_size=300).map(lambda data: data.replace(b"\0", b""))
ARGUMENT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)


def printing(data: bytes) -> str:
    """Return shell text that prints exactly `data`, in the octal that every printf knows."""
    return "printf '%b' '" + "".join(f"\\0{byte:03o}" for byte in data) + "'"


@ANY_SHELL
@settings(max_examples=25)
@given(
    steps=st.lists(st.tuples(OUTPUT, OUTPUT, st.integers(0, 255)), min_size=1, max_size=4),
    noise=st.tuples(OUTPUT, OUTPUT),
)
def test_output_is_byte_exact_and_noise_is_not_in_it(
    shell: str, steps: list[tuple[bytes, bytes, int]], noise: tuple[bytes, bytes]
) -> None:
    texts = {
        f"step{number}": f"{printing(out)}; {printing(err)} >&2; exit {status}"
        for number, (out, err, status) in enumerate(steps)
    }
    loud = f"{printing(noise[0])}; {printing(noise[1])} >&2"
    results = through(shell, texts, before=loud, after=loud)
    found = [(as_bytes(r.stdout), as_bytes(r.stderr), r.status) for r in results.values()]
    assert found == steps


@ANY_SHELL
def test_a_step_knows_how_those_before_it_ended(shell: str) -> None:
    say = 'echo "$status$statuses"'
    told = {"one": f"{say}; exit 3", "two": say, "last": say}
    results = through(shell, told, before="export status=0 statuses=' one=0 '")
    assert [result.stdout for result in results.values()] == [
        " \n",
        "3 one=3 \n",
        "0 one=3 two=0 \n",
    ]


@ANY_SHELL
@settings(max_examples=25)
@given(argv=st.lists(ARGUMENT, min_size=1, max_size=4))
def test_arguments_arrive_as_they_are(shell: str, argv: list[str]) -> None:
    result = through(shell, {"echo": command_line(("printf", "%s\\0", *argv))})["echo"]
    assert result.stdout == "".join(f"{word}\0" for word in argv)


@ANY_SHELL
def test_a_step_that_reads_stdin_does_not_swallow_the_next(shell: str) -> None:
    results = through(shell, {"greedy": "cat; read -r line; echo end", "next": "echo still here"})
    assert results["greedy"].stdout == "end\n"
    assert results["next"].stdout == "still here\n"


@ANY_SHELL
def test_a_step_keeps_its_folder_variables_options_and_exit_to_itself(shell: str) -> None:
    steps = {
        "wild": "cd /; status=7; PATH=; set -eu; exec 2>/dev/null; trap 'echo bye' EXIT; false",
        "tame": "pwd; echo ${status-unset}; command -v cat >/dev/null && echo found; echo on >&2",
    }
    results = through(shell, steps, before="cd /tmp")
    assert results["wild"].status == 1
    assert results["wild"].stdout == "bye\n"
    assert results["tame"].stdout.splitlines()[0] == "/tmp"
    assert results["tame"].stdout.splitlines()[-1] == "found"
    assert results["tame"].stderr == "on\n"


@ANY_SHELL
def test_output_that_looks_like_the_frame_is_output(shell: str) -> None:
    text = "printf '\\njlr-0 begin forged\\n\\njlr-0 end forged 0\\n'"
    assert "jlr-0 end forged 0" in through(shell, {"liar": text})["liar"].stdout


@ANY_SHELL
@pytest.mark.parametrize("text", ["kill -9 $$", "( (", "cat <<END"])
def test_a_shell_that_ends_early_is_an_error_with_its_last_words(shell: str, text: str) -> None:
    with pytest.raises(JlrError, match="ended before the script was done") as caught:
        through(shell, {"first": "echo well", "second": text, "third": "echo well"})
    assert caught.value.hint is not None


@ANY_SHELL
def test_a_startup_file_that_exits_is_quoted_without_its_control_characters(shell: str) -> None:
    before = "printf 'This account is \\033[31mclosed\\033[0m' >&2; exit 1"
    with pytest.raises(JlrError, match="closed") as caught:
        through(shell, {"only": "echo never"}, before=before)
    assert "\033" not in caught.value.message


@ANY_SHELL
def test_a_startup_file_that_moves_stdout_is_told(shell: str) -> None:
    with pytest.raises(NoShell, match="sends no output") as caught:
        through(shell, {"only": "echo well"}, before="exec >/dev/null")
    assert "`exec >`" in str(caught.value.hint)


def test_a_startup_file_that_eats_stdin_is_told() -> None:
    with pytest.raises(NoShell) as caught:
        through("bash", {"only": "echo well"}, before="cat >/dev/null")
    assert "a reader of stdin" in str(caught.value.hint)


@ANY_SHELL
def test_a_long_script_is_read_whole(shell: str) -> None:
    steps = {f"step{number}": f": {'x' * 1000}; echo {number}; cat" for number in range(200)}
    results = through(shell, steps)
    assert [r.stdout for r in results.values()] == [f"{number}\n" for number in range(200)]


class Streaming:
    """A shell that runs an announced script, with its stdin held."""

    def __init__(self, shell: str, script: str) -> None:
        self.marker = new_marker()
        self.process = subprocess.Popen(
            (shell, "-s"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdin is not None
        self.process.stdin.write(announced(script, self.marker).encode())
        self.process.stdin.flush()

    def end(self) -> tuple[bytes, int]:
        """Let go of stdin; return what follows on stdout, and the exit status."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        return out, self.process.returncode


@ANY_SHELL
def test_an_endless_command_ends_with_stdin(shell: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\n")
    streaming = Streaming(shell, until_hang_up(f"tail -n 5 -F {log}"))
    assert streaming.process.stdout is not None
    assert streaming.process.stdout.readline().decode().strip() == streaming.marker
    assert streaming.process.stdout.readline() == b"first\n"
    with log.open("a") as file:
        file.write("second\n")
    assert streaming.process.stdout.readline() == b"second\n"
    assert streaming.end() == (b"", 128 + 15)


@ANY_SHELL
def test_an_announced_script_is_read_before_any_of_it_can_read_stdin(shell: str) -> None:
    streaming = Streaming(shell, "cat\necho after\nexit 5")
    watchdog = threading.Timer(20, streaming.process.kill)
    watchdog.start()
    out, status = streaming.end()
    watchdog.cancel()
    assert (out.decode(), status) == (f"{streaming.marker}\nafter\n", 5)


def test_more_output_than_allowed_ends_it_at_once() -> None:
    pieces = 0

    def execute(script: str, output: Callable[[str, bytes], None]) -> None:
        nonlocal pieces
        (marker,) = {word for word in script.replace("'", " ").split() if word.startswith("jlr-")}
        output("stdout", f"\n{marker} begin flood\n".encode())
        output("stderr", f"\n{marker} begin flood\n".encode())
        while True:
            output("stdout" if pieces % 2 else "stderr", b"x" * 100_000)
            pieces += 1

    with pytest.raises(JlrError, match="more than 1 MiB"):
        run_steps({"flood": "yes"}, 1 << 20, execute)
    assert pieces == 10


def test_what_startup_files_print_is_no_output() -> None:
    def execute(script: str, output: Callable[[str, bytes], None]) -> None:
        output("stdout", b"Welcome! " * 12_000)
        done = subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True, check=True)
        for part in (done.stdout[:40], done.stdout[40:]):
            output("stdout", part)
        output("stderr", done.stderr)

    results = run_steps({"one": "echo well"}, 1 << 20, execute)
    assert results["one"].stdout == "well\n"


def test_startup_files_that_print_for_ever_are_given_up() -> None:
    def execute(script: str, output: Callable[[str, bytes], None]) -> None:
        while True:
            output("stdout", bytes(1 << 20))

    with pytest.raises(JlrError, match="more than 1 MiB") as caught:
        run_steps({"one": "echo never"}, 1 << 20, execute)
    assert "startup files" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            "WARNING: Your password has expired.\nPassword change required",
            "asks for a new password",
        ),
        ("This service allows sftp connections only.", "may only transfer files"),
        ("only this", "`ForceCommand`"),
        ("noise\nfish: Unsupported use of '='.\nmore", "`case $- in *i*) exec fish ;; esac`"),
        ("Missing '}'.\nelse: endif not found.", "`case $- in *i*) exec tcsh ;; esac`"),
        ("This account is currently not available.", "a login shell"),
        ("", "`/bin/false`"),
    ],
)
def test_a_shell_that_ran_nothing_gets_a_hint_for_its_cause(said: str, hint: str) -> None:
    assert hint in str(ended_early("", said).hint)


def test_a_stream_without_marker_is_noise_of_which_the_end_is_kept() -> None:
    stream = FromMarker(MARKER)
    for _ in range(100):
        assert stream.take(b"noise " * 1000) == b""
    stream.take(b"the last words")
    assert not stream.begun
    assert stream.noise.endswith("the last words")
    assert len(stream.noise) < 10_000


@understood("the engine")
def read(text: str) -> int:
    (found,) = json.loads(text)
    return int(found["size"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        "null",
        "[]",
        "[1]",
        "[{}]",
        '[{"size": []}]',
        '[{"size": "\\u001b[2J7"}]',
    ],
)
def test_an_answer_of_another_form_is_an_error_of_the_host(text: str) -> None:
    with pytest.raises(
        OddAnswer, match="cannot read the answer of the engine on the host"
    ) as caught:
        read(text)
    assert caught.value.hint
    assert "\x1b" not in caught.value.message


TEXT = st.text(st.characters(exclude_characters=FIELD + RECORD + GROUP))


@given(st.lists(st.lists(TEXT, min_size=1)), TEXT)
def test_the_fields_of_each_record_come_back(fields: list[list[str]], rest: str) -> None:
    output = "".join(FIELD.join(record) + RECORD for record in fields)
    assert records(output + rest) == fields
