"""A browser is given a private file, so that the token is in no process's arguments."""

import os
import re
import stat
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from socket import create_connection
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

import pytest

from jlremote.errors import JlrError
from jlremote.forwards.address import Address
from jlremote.forwards.browser import open_in_browser, trouble
from jlremote.place.host import addresses
from tests.lab.programs import PATIENCE, wait_until, write_program

URL = "http://127.0.0.1:8888/cont1/lab?token=5ec2e7&a='b'"
PAGE = "http://cont1-dgx.localhost:8888/cont1/lab?token=5ec2e7&a='b'"
ADDRESS = Address(URL, PAGE)
Record = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a laptop with a display, and a runtime directory of its own."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("BROWSER", raising=False)
    # What the library found on the first call it keeps for the process.
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    monkeypatch.setattr(webbrowser, "_browsers", {})
    return runtime / "jlr"


@pytest.fixture
def recorder(tmp_path: Path) -> tuple[Path, Record]:
    """Give a program that notes its argv, and a way to read it."""
    program, record = tmp_path / "my-browser", tmp_path / "argv"
    write_program(program, f'#!/bin/sh\necho noise; printf "%s\\n" "$@" > {record}\n')

    def read() -> list[str]:
        wait_until(
            lambda: record.exists() and record.read_text().endswith("\n"), "the browser's start"
        )
        return record.read_text().splitlines()

    return program, read


def followed(address: str) -> str:
    """Return where the redirect file leads a browser."""
    page = Path(urlsplit(address).path).read_text()
    [target] = re.findall(r'content="0;url=([^"]*)"', page)
    return unescape(str(target))


def test_an_address_cannot_leave_its_place_in_the_page(recorder: tuple[Path, Record]) -> None:
    program, argv = recorder
    hostile = f"{PAGE}\"'><script>alert(1)</script></a><meta http-equiv=refresh content=0;url=//x>"
    assert open_in_browser(Address(hostile, hostile), str(program)) is None
    text = Path(urlsplit(argv()[0]).path).read_text()
    found = Tags(text)
    assert found.names[:7] == ["html", "head", "meta", "meta", "noscript", "meta", "title"]
    assert found.names[7:] == ["body", "a", "a", "script"]
    assert found.links == [hostile, hostile]
    assert "alert" not in text[text.index("<script>") :]


class Tags(HTMLParser):
    """The tags of a page, and the targets of its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [value for name, value in attrs if name == "href"]


def test_only_this_user_can_read_the_file(recorder: tuple[Path, Record]) -> None:
    program, argv = recorder
    open_in_browser(ADDRESS, str(program))
    file = Path(urlsplit(argv()[0]).path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("form", ["{}", "{} %s", "{} --new-window"])
def test_the_first_browser_of_a_list_that_starts_is_taken(
    form: str, recorder: tuple[Path, Record], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program, argv = recorder
    broken = tmp_path / "broken"
    write_program(broken, "#!/bin/sh\nexit 3\n")
    names = ["no-such-browser", "no-such-browser %s", str(broken), "", form.format(program)]
    monkeypatch.setenv("BROWSER", os.pathsep.join([*names, str(broken)]))
    assert trouble() is None
    assert open_in_browser(ADDRESS) is None
    assert followed(argv()[-1]) == PAGE
    monkeypatch.setenv("BROWSER", os.pathsep.join(names[:3]))
    missing = "this machine has no browser `no-such-browser"
    failed = f"{missing}`; {missing} %s`; the browser `{broken}` ended with status 3"
    assert open_in_browser(ADDRESS) == failed


@pytest.mark.parametrize("form", ["{} --new-window %s", "{} --new-window %s &", "{} --new-window"])
def test_a_browser_may_have_arguments(form: str, recorder: tuple[Path, Record]) -> None:
    program, argv = recorder
    assert open_in_browser(ADDRESS, form.format(program)) is None
    option, address = argv()
    assert option == "--new-window"
    assert followed(address) == PAGE


def test_without_a_display_nothing_is_opened(monkeypatch: pytest.MonkeyPatch, laptop: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY")
    assert open_in_browser(ADDRESS) == "this machine has no display for a browser"
    assert not laptop.exists()


@pytest.mark.parametrize("name", ["no-such-browser", "no-such-browser --flag %s", "an 'open quote"])
def test_a_missing_browser_is_reported(name: str) -> None:
    complaint = open_in_browser(ADDRESS, name) or ""
    assert complaint.startswith(
        ("this machine has no browser `", "the browser `no-such-browser` does not")
    )


def test_a_text_browser_is_not_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "w3m"
    write_program(program, "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "is a text browser" in (open_in_browser(ADDRESS) or "")
    assert "is a text browser" in (open_in_browser(ADDRESS, "w3m") or "")


def test_a_session_has_one_file_and_old_ones_are_deleted(
    recorder: tuple[Path, Record], laptop: Path
) -> None:
    program, _ = recorder
    laptop.mkdir(mode=0o700)
    stale, fresh, foreign = laptop / "open-1.html", laptop / "open-2.html", laptop / "other.html"
    for path in (stale, fresh, foreign):
        path.write_text("x")
    for path in (stale, foreign):
        os.utime(path, (0, 0))
    open_in_browser(ADDRESS, str(program))
    open_in_browser(ADDRESS, str(program))
    names = sorted(path.name for path in laptop.iterdir())
    assert names == ["open-2.html", "open-8888.html", "other.html"]


def test_the_directory_of_another_user_is_not_used(
    recorder: tuple[Path, Record], laptop: Path
) -> None:
    laptop.mkdir(mode=0o755)
    with pytest.raises(JlrError, match="others have access"):
        open_in_browser(ADDRESS, str(recorder[0]))


def confined(program: Path, tmp_path: Path, way: str) -> str:
    """Return the name of a browser that starts snap's, in one of the ways that desktops have."""
    place = tmp_path / "snap" / "bin"
    place.mkdir(parents=True)
    own = program.rename(place / "firefox")
    if way == "script":
        wrapper = tmp_path / "firefox"
        wrapper.write_text(f'#!/bin/sh\nexec {own} "$@"\n')
    elif way == "link":
        wrapper = tmp_path / "firefox"
        wrapper.symlink_to(own)
    elif way == "default":
        wrapper = tmp_path / "xdg-open"
        wrapper.symlink_to(own)
        settings, entry = tmp_path / "xdg-settings", tmp_path / "applications"
        write_program(settings, "#!/bin/sh\necho firefox_firefox.desktop\n")
        entry.mkdir()
        (entry / "firefox_firefox.desktop").write_text("X-SnapInstanceName=firefox\n")
    else:
        return str(own)
    wrapper.chmod(0o755)
    return str(wrapper)


class NotFollowed(HTTPRedirectHandler):
    """Leaves redirects to the test."""

    def redirect_request(self, *_: object) -> None:
        return None


@pytest.mark.skipif(sys.platform != "linux", reason="snap and Flatpak are Linux's")
@pytest.mark.parametrize("way", ["itself", "link", "script", "default"])
def test_a_confined_browser_is_given_a_page_that_answers_once(
    recorder: tuple[Path, Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    program, argv = recorder
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path))
    assert open_in_browser(ADDRESS, confined(program, tmp_path, way)) is None
    [address] = argv()
    assert address.startswith("http://127.0.0.1:")
    assert "5ec2e7" not in address
    opener = build_opener(ProxyHandler({}), NotFollowed())
    for asked, status in ((f"{address}x", 403), (address, 303)):
        with pytest.raises(HTTPError) as answer:
            opener.open(asked, timeout=PATIENCE)
        assert answer.value.code == status
        answer.value.close()
    assert answer.value.headers["Location"] == PAGE
    wait_until(lambda: not answers(address), "the end of the page")


def answers(address: str) -> bool:
    with suppress(OSError), create_connection(("127.0.0.1", urlsplit(address).port or 0)):
        return True
    return False


def test_another_users_socket_is_told_from_ones_own() -> None:
    rows = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid",
        f"   1: 0100007F:C001 0100007F:1F90 01 0:0 00:0 0 {os.getuid()} 0 7 1",
        f"   2: 0100007F:C002 0100007F:1F90 01 0:0 00:0 0 {os.getuid() + 1} 0 8 1",
        f"   3: 0100007F:C002 0100007F:1F91 01 0:0 00:0 0 {os.getuid()} 0 9 1",
    )
    table = "\n".join(rows)
    assert addresses.is_own(table, 0xC001, 8080)
    assert not addresses.is_own(table, 0xC002, 8080), "its port is also one's own elsewhere"
    assert not addresses.is_own(table, 0xC003, 8080)
