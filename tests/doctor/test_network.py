"""The network of containers beside that of the host, and the search for an image to try it in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jlremote.doctor import network
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, Engine

# An image is called by how its container ends.
PROGRAM = """\
#!/bin/sh
case "$1 $2" in
  "image ls") case "$*" in *dangling=false*) cat images;; esac;;
  "image inspect") shift 4; for image; do echo "${image%%-*} $image"; done;;
  run*) echo "$5" >>tried; echo "refused $5" >&2; exit "${5##*-}";;
esac
"""


def searched(folder: Path, images: str) -> tuple[int, str, str]:
    """Return how the search on a host with these images ends, what it says and what it tried."""
    (folder / "images").write_text(images, encoding="utf-8")
    (folder / "tried").touch()
    program = folder / "docker"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-s"],
        input=network.ask_in_new_container(DOCKER),
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stderr, " ".join((folder / "tried").read_text("utf-8").split())


@pytest.mark.parametrize(
    ("images", "status", "tried"),
    [
        ("10-127 9-0 11-0", 0, "9-0"),
        ("1-127 2-126 3-5 4-1 5-1 6-1 7-3 8-0", 3, "1-127 2-126 3-5 4-1 5-1 6-1 7-3"),
        ("1-125 2-0", 0, "1-125 2-0"),
        ("1-125 2-127 3-125 4-0", 125, "1-125 2-127 3-125"),
        ("1-127 2-125", 125, "1-127 2-125"),
        ("1-127 2-5", 5, "1-127 2-5"),
        ("", 5, ""),
    ],
)  # fmt: skip
def test_the_smallest_image_that_can_answer_does(
    images: str, status: int, tried: str, tmp_path: Path
) -> None:
    said = f"refused {tried.split()[-1]}\n" if status == 125 else ""
    assert searched(tmp_path, images) == (status, said, tried)


def test_the_search_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_SEARCH_SECONDS", 0)
    assert searched(tmp_path, "1-0") == (5, "", "")


def said(stdout: str = "", status: int = 0, stderr: str = "") -> Completed:
    return Completed(status, stdout, stderr)


def test_the_network_is_judged_by_that_of_containers() -> None:
    for on_host, inside, mark, word in (
        (0, 0, "ok", "reach pypi.org"),
        (0, 3, "warning", "cannot resolve"),
        (0, 4, "warning", "cannot connect"),
        (0, 124, "warning", "in 8 s"),
        (3, 3, "warning", "the host itself cannot resolve `pypi.org`"),
        (3, 5, "warning", "the host itself cannot resolve `pypi.org`"),
        (4, 4, "warning", "the host itself cannot connect to `pypi.org`"),
        (124, 124, "warning", "the host itself does not reach `pypi.org` in 8 s"),
        (0, 5, "skipped", "not tried in a container: no image with Python or `getent` was found"),
        (5, 3, "skipped", "not tried: it takes Python or `getent`"),
        (6, 3, "skipped", "not tried: the host reaches `pypi.org` by a proxy"),
        (0, 6, "skipped", "not tried: containers reach `pypi.org` by a proxy"),
    ):
        judged = network.judge(DOCKER, said(status=on_host), said(status=inside))
        assert judged.mark == mark
        assert word in judged.text
        assert bool(judged.mend) == (mark == "warning"), "a warning says what to do"
    judged = network.judge(None, said(), None)
    assert (judged.mark, judged.text) == ("ok", "the host reaches pypi.org")
    assert network.judge(None, said(status=3), None).mark == "warning"


def test_a_host_without_a_name_server_is_told_how_to_look_and_where_a_proxy_is_set() -> None:
    judged = network.judge(DOCKER, said(status=3), said(status=3))
    [told] = judged.mend
    assert told == (
        "`cat /etc/resolv.conf` there shows its name servers, `getent hosts pypi.org` tries them; "
        "where it is meant to use a proxy, set `https_proxy` in /etc/environment there"
    )


CHAINS = (
    "docker: Error response from daemon: driver failed programming external connectivity on "
    "endpoint x: (iptables failed: iptables --wait -t nat -A DOCKER: iptables: No chain/target/"
    "match by that name.\n (exit status 1)).\n\nRun 'docker run --help' for more information\n"
)
BRIDGE = (
    "docker: Error response from daemon: failed to create endpoint elastic_pare on network bridge: "
    "adding interface veth8a183c4 to bridge docker0 failed: could not find bridge docker0: "
    "route ip+net: no such network interface\n\nRun 'docker run --help' for more information\n"
)


@pytest.mark.parametrize(
    ("engine", "words", "told", "mend"),
    [
        (DOCKER, CHAINS, "driver failed programming external", "`sudo systemctl restart docker`"),
        (DOCKER, BRIDGE, "failed to create endpoint", "`sudo systemctl restart docker`"),
        (DOCKER, "docker: unable to find user x", "unable to find user x", "`docker run --rm"),
        (ENGINES["sudo podman"], "Error: netavark: iptables", "netavark", "`sudo podman run --rm"),
    ],
)
@pytest.mark.parametrize("on_host", [0, 3, 5])
def test_an_engine_that_runs_no_container_is_told_in_its_own_words(
    engine: Engine, words: str, told: str, mend: str, on_host: int
) -> None:
    refused = said(status=125, stderr=words)
    judged = network.judge(engine, said(status=on_host), refused)
    assert judged.mark == "warning"
    assert judged.text.startswith(f"no container could try it: {told}")
    assert mend in judged.mend[0]


@pytest.mark.parametrize(
    ("python", "proxy", "status"),
    [
        ("exit 0", "", 0),
        ("exit 1", "", 3),
        ('case "$2" in *create_connection*) exit 1; esac', "", 4),
        ("exit 1", "http://proxy:3128", 6),
        ('case "$2" in *create_connection*) exit 1; esac', "http://proxy:3128", 6),
    ],
)
def test_names_are_asked_for_before_the_way_and_a_proxy_excuses_both(
    python: str, proxy: str, status: int, tmp_path: Path
) -> None:
    program = tmp_path / "python3"
    program.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "https_proxy": proxy}
    done = subprocess.run(["sh", "-c", network.ASK], env=environment, check=False)
    assert done.returncode == status
