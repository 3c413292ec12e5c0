"""Answers of the right form with one value that is none: of any size, depth or kind.

Each is a real answer of which a value was replaced. A reader raises an error about the host, or
returns what can be shown; and the commands that read engines end as with any odd host. That is one
which answers nonsense to every script: no traceback, no bug, nothing for the terminal. Its answers
are drawn with a fixed seed from the separators and words of real ones.
"""

from __future__ import annotations

import json
import random
import re
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.errors import JlrError, NoShell
from jlremote.gpus import snapshot
from jlremote.images import image_commands, image_files, removal
from jlremote.images.build import BuildLog
from jlremote.images.transfers import Transfer
from jlremote.jobs import engine_jobs
from jlremote.jupyter import activity, locate
from jlremote.jupyter.discovery import read_probe
from jlremote.kernels.remote_kernel import decoded
from jlremote.link.client.link import Link
from jlremote.link.wire.protocol import _message
from jlremote.output import notebook_copy
from jlremote.output.recorded_files import Reader
from jlremote.output.runs import runs_of
from jlremote.output.view import ending, missing, shown
from jlremote.place.clusters.slurm_lists import QUEUE_COLUMNS, QUEUE_HEADING, read_gpus, read_queue
from jlremote.place.host import addresses, framing, kept_jobs
from jlremote.place.host.contract import FIELD, Completed, Steps
from jlremote.place.runtimes import processes
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import read_list
from jlremote.place.runtimes.runtime import ContainerSpec
from jlremote.ssh.forward import browser_requests
from tests.adversity.parts import CODES, COMMANDS, MOST_SECONDS, bounded
from tests.cli.conftest import Jlr, jlr, laptop
from tests.gpus.parts import DATA, FIELDS, answer, container, process, record, row
from tests.jupyter.parts import FACTS, listening, probed, server
from tests.lab.programs import load
from tests.long import WANTED

__all__ = ["jlr", "laptop"]

INSPECTED = {
    "Id": "c0ffee" * 10 + "abcd",
    "Name": "/cont1",
    "State": {
        "Status": "running",
        "Running": True,
        "Paused": False,
        "OOMKilled": True,
        "ExitCode": 137,
        "StartedAt": "2025-03-01T12:00:00.5Z",
        "Error": "",
        "FinishedAt": "2025-03-01T12:01:00Z",
    },
    "Config": {
        "Image": "lab/jupyter",
        "WorkingDir": "/work",
        "User": "",
        "Env": ["A=b"],
        "Tty": False,
        "OpenStdin": False,
        "Entrypoint": ["sh"],
        "Labels": {"jlr.session": "cont1", "jlr.job": "cont1", "jlr.packages": "a b"},
    },
    "HostConfig": {
        "NetworkMode": "bridge",
        "Memory": 1 << 30,
        "ShmSize": 1 << 26,
        "IpcMode": "private",
        "Ulimits": [{"Name": "nofile", "Soft": 1, "Hard": 2}],
        "AutoRemove": False,
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
        "Init": True,
        "DeviceRequests": [{"Count": -1, "DeviceIDs": ["0"], "Capabilities": [["gpu"]]}],
    },
    "NetworkSettings": {"SandboxKey": "", "Networks": {"bridge": {"IPAddress": "172.17.0.2"}}},
    "Mounts": [{"Type": "bind", "Source": "/a", "Destination": "/b", "Mode": "ro", "RW": True}],
}
IMAGE = {
    "Id": "sha256:ab",
    "Created": "2025-03-01T12:00:00Z",
    "Size": 1 << 30,
    "id": "sha256:ab",
    "created": "2025-03-01T12:00:00Z",
    "size": 1 << 30,
    "RepoTags": ["a:b"],
    "names": ["a:b"],
    "layers": ["x"],
    "image": "sha256:ab",
    "name": "/c",
    "Architecture": "amd64",
}
MESSAGE = {
    "channel": "iopub",
    "header": {"msg_id": "a", "msg_type": "status"},
    "parent_header": {},
    "metadata": {},
    "content": {"execution_state": "idle"},
}
RECORDS = [
    {"time": 1.7e9, "kernel": "k", "notebook": "a.ipynb", "cell": "c", "request": "r", **rest}
    for rest in (
        {"kind": "code", "content": {"code": "1", "execution_count": 1}},
        {"kind": "stream", "content": {"name": "stdout", "text": "a"}},
        {"kind": "display_data", "content": {"data": {}, "metadata": {}, "transient": {}}},
        {"kind": "execute_result", "content": {"data": {"text/plain": "1"}, "execution_count": 1}},
        {"kind": "error", "content": {"ename": "E", "evalue": "v", "traceback": ["a"]}},
        {"kind": "lost", "content": {"from": 1.0, "until": 2.0, "why": "x"}},
        {"kind": "end", "content": {"status": "ok"}},
        {"kind": "kernel", "content": {"state": "died"}},
    )
]
NOTEBOOK = {"cells": [{"cell_type": "code", "id": "c", "source": "1", "outputs": [{}]}]}
SPEC = ContainerSpec("a", "/a.sif", options=ContainerOptions(), gpus="all")
DEEP = "[" * 200_000
# What stands in place of a number or of a text, in JSON as it is written.
VALUES = [
    *("null", "true", "[]", "{}", '""', "-1", "1e999", "NaN", "-Infinity", "1.5", "1" + "0" * 400),
    *("9" * 5000, "-" + "9" * 30, '"٣"', '"\\ud800"', '"\\u0000"', '"' + "a" * 5000 + '"'),
    *('"' + "9" * 5000 + '"', '"1e999"', '"²"', '"../../x"', '"9999-99-99T99:99:99Z"'),
    *('"-9999-01-01T00:00:00Z"', "[" * 90 + "]" * 90, DEEP, '[{"a": [1]}]', '{"a": {"b": 1}}'),
]
WORDS = [
    *("", "-1", "0", "9" * 19, "9" * 5000, "1e999", "nan", "inf", "0x1f", "²", "٣", "1_0", " "),
    *("[N/A]", "\ud800", "\0", "\x1b[2J", "a" * 100_000, "[" * 3000),
    *(" " * 100_000, "\x1b" * 100_000, "A " * 50_000, "1," * 50_000, "\t" * 100_000, "=" * 100_000),
    *("1.2.3", "/..", "1" * 400),
]
EXAMPLES = 100 if WANTED else 20
ANSWERS_EACH = 300 if WANTED else 6
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"(?!:)|-?\d[\d.e+]*|true|false|null')
_WORD = re.compile(r"[\w.:/+-]+|\W")


def replaced(text: str, pattern: re.Pattern[str], values: list[str], chance: random.Random) -> str:
    """Return a text with one or two of its values replaced."""
    for _ in range(chance.choice((1, 1, 2))):
        if found := list(pattern.finditer(text)):
            begin, end = chance.choice(found).span()
            text = text[:begin] + chance.choice(values) + text[end:]
    return text


def records_of(printed: str) -> object:
    reader = Reader()
    told = [*reader.take(b"\x1e1 0\n"), *reader.take(printed.encode("utf-8", "replace"))]
    found = runs_of(each for each in told if each is not None)
    runs = list(found.all())
    filled = notebook_copy.filled(json.loads(json.dumps(NOTEBOOK)), runs)
    lost = [missing(each) for each in told if each is not None]
    return [ending(run) for run in runs], [run.to_json() for run in runs], lost, filled.content


def taken(watch: Transfer | BuildLog, text: str) -> object:
    watch.take(text)
    watch.finish()
    return watch


JSON_READERS: dict[str, tuple[Callable[[str], object], object]] = {
    "jobs in containers": (engine_jobs.read, [INSPECTED]),
    "image": (image_commands.read_image, [IMAGE]),
    "images": (lambda text: image_commands.read_list(text, every=True), IMAGE),
    "images to remove": (lambda text: removal.read_images(text, text), IMAGE),
    "containers": (
        lambda text: read_list(DOCKER, Completed(0, f"{text}\x1ec0\x1fUSER\na 1 b", "")),
        [INSPECTED],
    ),
    "kernel message": (decoded, MESSAGE),
    "kernel message of parts": (
        lambda text: decoded(struct.pack("!2I", 1, 8) + text.encode("utf-8", "replace")),
        MESSAGE,
    ),
    "definition": (processes.read_definition, json.loads(processes.written_definition(SPEC))),
    "notebook": (lambda text: notebook_copy.read(text.encode("utf-8", "replace"), "a"), NOTEBOOK),
    "a wait": (kept_jobs.waits, {"place": 1, "why": "x"}),
    "runtime file": (lambda text: read_probe(probed(server(text))), FACTS),
    "frame": (lambda text: _message(text.encode("utf-8", "replace")), {"op": "status"}),
}
_GPU = answer(
    row(0, used=5009),
    record("owners", "/proc/100 ada", "/proc/100/stat:100 (a) S 1", "/proc/100/cgroup:0::/x"),
    processes=process(0),
    containers=(
        container(
            {"DeviceRequests": [{"Count": 0, "DeviceIDs": ["0"]}], "Runtime": "runc"},
            {"Env": ["NVIDIA_VISIBLE_DEVICES=all", None]},
            *("ada", "GPU-1"),
        )
        + "\nnode|n1|   Gres=gpu:a100:2   GresUsed=gpu:a100:1(IDX:0-1)\n"
        "job|JobId=7 UserId=ada(1) Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:a100:1(IDX:0)\n"
        "refused|permission denied\nsilent|no answer"
    ),
    fields=FIELDS,
)
_QUEUE = "\n".join(
    (
        FIELD.join((QUEUE_HEADING, *QUEUE_COLUMNS)),
        FIELD.join(("7", "a", "RUNNING", "None", "1", "2", "n1")),
    )
)
TEXT_READERS: dict[str, tuple[Callable[[str], object], str]] = {
    "nvidia-smi": (lambda text: snapshot.read(text, "dgx"), _GPU),
    "MIG": (
        lambda text: snapshot.read_mig((DATA / "mig-list.txt").read_text(), text),
        (DATA / "mig.xml").read_text(),
    ),
    "MIG list": (
        lambda text: snapshot.read_mig(text, (DATA / "mig.xml").read_text()),
        (DATA / "mig-list.txt").read_text(),
    ),
    "squeue": (read_queue, _QUEUE),
    "sinfo": (read_gpus, f"a{FIELD}b{FIELD}gpu:a100:2{FIELD}gpu:1{FIELD}idle\n" * 2),
    "jobs": (
        kept_jobs.read,
        "\x1f".join(("a", "c", "", "", "", '{"place": 1}', "m", "1", "0 2", "x")) + "\x1e",
    ),
    "image files": (image_files.read_list, "10\x1f17\x1f/a/b@c.sif\x1e"),
    "processes": (activity.read, "self\x1f7\x1e7 (a) S 1 7 7 0 -1\x1fa\0b\x1e"),
    "probe": (read_probe, probed(server(), status="1")),
    "tcp": (addresses.read_listeners, listening()),
    "unix": (
        lambda text: addresses.listening_inodes(text, "/a"),
        "0: 00000002 0 00010000 0001 01 7 /a\n",
    ),
    "what listens": (
        locate.read_listening,
        f"user\x1f0\x1epython\x1fp\x1elistening\x1f{listening()}\x1eheld\x1f\x1e",
    ),
    "framing": (
        lambda text: framing.unframed(["one"], text, text, "m"),
        "\nm begin one\nx\nm end one 0\n",
    ),
    "pull": (lambda text: taken(Transfer(), text), "0123456789ab: Downloading  36.45kB/2.001MB\n"),
    "build": (
        lambda text: taken(BuildLog(), text),
        "Step 2/3 : RUN a\n  3 | >>> RUN b\nparse error on line 4: x\n",
    ),
    "terminal": (lambda text: shown(text), "\x1b[2Aa\x1b[1;31mb\r\x1b[3Kc\x1b[9Dd"),
    "request": (
        lambda text: browser_requests.may_be_repeated(text.encode("utf-8", "replace")),
        "PUT /a HTTP/1.1\r\nsec-fetch-mode: cors\r\ncontent-length: 3\r\n\r\nabc",
    ),
}
# As their docstrings say.
REFUSED: dict[str, tuple[type[Exception], ...]] = {
    "frame": (ValueError,),
    "definition": (ValueError, LookupError, TypeError),
}


def read(name: str, reader: Callable[[str], object], text: str) -> None:
    expected: tuple[type[Exception], ...] = (JlrError, *REFUSED.get(name, ()))
    began = time.monotonic()
    try:
        found = reader(text)
    except expected:
        pass
    else:
        assert repr(found) is not None
    assert time.monotonic() - began < 5 * load()


@pytest.mark.parametrize("name", JSON_READERS)
@settings(max_examples=EXAMPLES, derandomize=True)
@given(chance=st.randoms(use_true_random=False))
def test_no_value_of_a_document_is_a_bug(name: str, chance: random.Random) -> None:
    reader, sample = JSON_READERS[name]
    text = json.dumps(sample)
    read(name, reader, text)
    read(name, reader, replaced(text, _VALUE, VALUES, chance))
    read(name, reader, DEEP)


@pytest.mark.parametrize("name", TEXT_READERS)
@settings(max_examples=EXAMPLES, derandomize=True)
@given(chance=st.randoms(use_true_random=False))
def test_no_word_of_an_answer_is_a_bug(name: str, chance: random.Random) -> None:
    reader, sample = TEXT_READERS[name]
    read(name, reader, sample)
    read(name, reader, replaced(sample, _WORD, WORDS, chance))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["kind"])
@settings(max_examples=EXAMPLES, derandomize=True)
@given(chance=st.randoms(use_true_random=False))
def test_no_value_of_a_record_is_a_bug(record: dict[str, Any], chance: random.Random) -> None:
    lines = [json.dumps(each) for each in (RECORDS[0], RECORDS[1], record)]
    lines.append(replaced(lines[-1], _VALUE, VALUES, chance))
    lines.append(json.dumps(RECORDS[-2]))
    read("record", records_of, "\n".join(lines) + "\n")


def test_an_xml_document_of_entities_or_of_many_levels_is_none() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 30))
    bomb = f'<!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]><a><gpu>&l29;</gpu></a>'
    listing = (DATA / "mig-list.txt").read_text()
    for document in (bomb, "<a>" * 200_000, "<a>" * 200_000 + "</a>" * 200_000):
        read("MIG", lambda text: snapshot.read_mig(listing, text), document)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("watch", [Transfer, BuildLog])
@pytest.mark.parametrize("piece", ["1" * 4096, " " * 4096, "A " * 2048, "1." * 2048])
def test_a_line_without_an_end_takes_no_time(watch: Callable[[], Any], piece: str) -> None:
    watched = watch()
    for _ in range(500):
        watched.take(piece)
    assert len(watched._begun) <= 1 << 16
    watched.take("0123456789ab: Downloading " + piece * 100 + "\n")
    watched.finish()


def engine_answers(chance: random.Random) -> Iterator[str]:
    while True:
        sample = chance.choice(([INSPECTED], [INSPECTED], IMAGE, [IMAGE], _GPU, _QUEUE))
        if isinstance(sample, str):
            yield replaced(sample, _WORD, WORDS, chance)
        else:
            yield replaced(json.dumps(sample), _VALUE, VALUES, chance)


@pytest.mark.parametrize("line", [line for line in COMMANDS if "clean" not in line])
def test_no_value_of_an_engine_is_a_bug(
    line: str, jlr: Jlr, draw: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(line)
    told = engine_answers(chance)

    def run(self: Link, steps: Steps, **_: object) -> dict[str, Completed]:
        return {name: Completed(0, next(told), "") for name in steps}

    monkeypatch.setattr(Link, "run", run)
    for _ in range(50 if WANTED else 4):
        with bounded(MOST_SECONDS):
            outcome = jlr("--no-input", *line.split())
        assert outcome.code in CODES, (line, outcome)
        assert "Traceback" not in outcome.stdout + outcome.stderr, (line, outcome)


@pytest.mark.parametrize("line", COMMANDS)
def test_no_answer_of_a_host_is_a_bug_or_hangs(line: str, jlr: Jlr, draw: random.Random) -> None:
    for number in range(ANSWERS_EACH):
        draw.seed(f"{line} {number}")
        with bounded(MOST_SECONDS):
            outcome = jlr("--no-input", *line.split())
        told = outcome.stdout + outcome.stderr
        assert outcome.code in CODES, (line, number, outcome)
        assert "Traceback" not in told, (line, number, outcome)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", told), (line, number, outcome)


@pytest.mark.parametrize("status", ["", "x", "-", "9" * 5000, "²", "1 2", "\x1b[2J"])
def test_an_exit_status_that_is_no_number_is_not_believed(status: str) -> None:
    """A login shell reads the script, and so knows the marker."""
    text = f"m begin one\noutput\nm end one {status}\n"
    with pytest.raises(NoShell):
        framing.unframed(["one"], text, text, "m")
