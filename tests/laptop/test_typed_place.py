"""One grammar for a place: what each word stands for, on a laptop that knows some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.errors import NotFound, Usage
from jlremote.laptop import sessions, typed_place
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.typed_place import host_word, is_known_host, resolved, with_path

KNOWN = (
    ("lab", "work"),
    ("lab", "box"),  # a host is called so, too
    ("lab", "twin"),
    ("me@dgx", "twin"),
    ("dgx2", "long_tf"),
)
SETTINGS = '[pools.both]\nhosts = ["dgx2", "me@dgx"]\n[pools.all]\nhosts = ["lab", "me@dgx"]\n'


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a laptop with sessions, pools and hosts, and return its ssh configuration."""
    for name in ("STATE", "CONFIG", "RUNTIME"):
        monkeypatch.setenv(f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}", str(tmp_path))
    monkeypatch.setattr(typed_place, "_told", set())
    for host, name in KNOWN:
        short = "tf" if name == "long_tf" else None
        sessions.save(SessionRecord(host, name, "docker", 8888, short))
    (tmp_path / "jlr" / "config.toml").write_text(SETTINGS)
    file = tmp_path / "ssh_config"
    file.write_text("Host lab dgx box\n")
    return file


@pytest.mark.parametrize("host_first", [False, True])
@pytest.mark.parametrize(
    ("word", "host", "name", "is_known"),
    [
        ("lab/work", "lab", "work", True),
        ("lab/other", "lab", "other", False),
        ("nowhere/other", "nowhere", "other", False),
        ("me@dgx/twin", "me@dgx", "twin", True),
        ("dgx2/tf", "dgx2", "long_tf", True),
        ("tf", "dgx2", "long_tf", True),
        ("long_tf", "dgx2", "long_tf", True),
        ("work", "lab", "work", True),
        ("lab", "lab", None, False),
        ("lab/", "lab", None, False),
        ("me@lab", "me@lab", None, False),
        ("dgx2", "dgx2", None, False),
        ("box/", "box", None, False),
        ("unknown", None, "unknown", False),
        ("gpu.lab.org", None, "gpu.lab.org", False),
        ("::1", None, "::1", False),
        ("@both", "@both", None, False),
        ("@both/twin", "me@dgx", "twin", True),
        ("@both/new", "@both", "new", False),
        ("ssh://me@gpu:2222", "ssh://me@gpu:2222", None, False),
        ("ssh://me@gpu:2222/", "ssh://me@gpu:2222", None, False),
        ("ssh://me@gpu:2222/work", "ssh://me@gpu:2222", "work", False),
    ],
)
def test_a_word_stands_for_one_place(
    config: Path, word: str, host: str | None, name: str | None, is_known: bool, host_first: bool
) -> None:
    told: list[str] = []
    place = resolved(word, config, told.append, host_first=host_first)
    assert (place.host, place.name, place.session is not None) == (host, name, is_known)
    assert told == []


@pytest.mark.parametrize(
    ("host_first", "place", "note"),
    [
        (False, ("lab", "box"), "`box` is taken as the session `lab/box`; `box/` is the host"),
        (True, ("box", None), "`box` is taken as the host; the session is `lab/box`"),
    ],
)
def test_of_a_session_and_a_host_of_one_name_the_one_that_is_asked_for_is_taken_and_told(
    config: Path, host_first: bool, place: tuple[str, str | None], note: str
) -> None:
    told: list[str] = []
    for _ in range(2):
        taken = resolved("box", config, told.append, host_first=host_first)
        assert (taken.host, taken.name) == place
    assert told == [note]
    assert (host_word("box"), host_word("lab")) == ("box/", "lab")


@pytest.mark.parametrize(
    ("word", "names"),
    [("twin", ("`lab/twin`", "`me@dgx/twin`")), ("@all/twin", ("`lab/twin`", "`me@dgx/twin`"))],
)
def test_a_name_on_two_hosts_is_refused_with_both(
    config: Path, word: str, names: tuple[str, ...]
) -> None:
    with pytest.raises(Usage, match="is the name of several sessions") as caught:
        resolved(word, config)
    assert all(name in (caught.value.hint or "") for name in names)
    with pytest.raises(NotFound, match="no pool `@none`"):
        resolved("@none/twin", config)


def test_hosts_are_known_from_ssh_the_settings_and_sessions(config: Path) -> None:
    for host in ("lab", "dgx", "dgx2", "me@dgx", "other@lab"):
        assert is_known_host(host, config)
    assert not is_known_host("gpu", config)
    config.with_name("jlr").joinpath("config.toml").write_text("nonsense")
    assert is_known_host("dgx2", config)  # it has a session, and the settings are told elsewhere


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("work:/data", ("work", "/data")),
        ("lab/work:data", ("lab/work", "data")),
        ("me@dgx:", ("me@dgx", "")),
        ("dgx:a:b", ("dgx", "a:b")),
        ("lab/:~/x", ("lab/", "~/x")),
        ("data", None),
        ("./a:b", None),
        ("/tmp/a:b", None),
        ("~/a:b", None),
        ("a/b/c:d", None),
        (":x", None),
        ("-r:x", None),
    ],
)
def test_a_path_there_has_its_place_before_the_colon(
    text: str, parts: tuple[str, str] | None
) -> None:
    assert with_path(text) == parts
