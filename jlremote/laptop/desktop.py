"""Notices on the desktop of this machine."""

from __future__ import annotations

import html
import logging
import os
import subprocess
import sys

from jlremote.errors import JlrError
from jlremote.text import one_line

log = logging.getLogger(__name__)

_SECONDS = 10
_MOST_TITLE, _MOST_TEXT = 100, 400
_SERVICE, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
_APPLE_SCRIPT = b"""\
on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run"""


def show(title: str, text: str) -> None:
    """Show a notice, which stays on Linux; the host's text is cut, on a line (see `check`)."""
    title, text = _cut(title, _MOST_TITLE), _cut(text, _MOST_TEXT)
    if sys.platform != "darwin":
        _by_dbus((title, text))
        return
    # The script comes on stdin: no option can follow its name `-`.
    argv = ("osascript", "-", title, text)
    try:
        done = subprocess.run(
            argv, input=_APPLE_SCRIPT, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as failure:
        raise JlrError(f"`osascript` cannot run: {failure}") from failure
    if done.returncode != 0:
        raise JlrError(f"`osascript` failed: {one_line(done.stderr.decode(errors='replace'))}")


def shown(title: str, text: str) -> bool:
    """Show a notice as `show` does; return whether there is a desktop for it."""
    try:
        show(title, text)
    except JlrError as none:
        log.info("no notice: %s", none)
        return False
    return True


def check() -> None:
    """Raise `JlrError` if there is no desktop, or it shows no notices."""
    if sys.platform != "darwin":
        _by_dbus(None)


def _cut(text: str, most: int) -> str:
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _by_dbus(notice: tuple[str, str] | None) -> None:
    """Find the service of https://specifications.freedesktop.org/notification-spec; show a notice.

    With `None` none is shown.
    """
    if sys.platform != "linux":
        raise JlrError(f"jlr shows no notices on the desktop of `{sys.platform}`")
    import jeepney
    from jeepney.io.blocking import open_dbus_connection
    from jeepney.wrappers import DBusErrorResponse, unwrap_msg

    service = jeepney.DBusAddress(_PATH, bus_name=_SERVICE, interface=_SERVICE)

    def ask(method: str, signature: str | None = None, body: tuple[object, ...] = ()) -> object:
        request = jeepney.new_method_call(service, method, signature, body)
        return unwrap_msg(bus.send_and_get_reply(request, timeout=_SECONDS))[0]

    try:
        usual = f"unix:path=/run/user/{os.getuid()}/bus"
        with open_dbus_connection(os.environ.get("DBUS_SESSION_BUS_ADDRESS") or usual) as bus:
            able = ask("GetCapabilities")
            if notice is not None:
                title, text = notice
                if isinstance(able, list) and "body-markup" in able:
                    text = html.escape(text, quote=False)
                urgency = {"urgency": ("y", 2)}  # critical: it stays
                ask("Notify", "susssasa{sv}i", ("jlr", 0, "", title, text, [], urgency, -1))
    except DBusErrorResponse as refused:
        raise JlrError(f"the desktop shows no notices: {one_line(refused.name)}") from refused
    except (OSError, ValueError, RuntimeError, jeepney.AuthenticationError) as failure:
        why = one_line(str(failure)) or type(failure).__name__
        raise JlrError(f"there is no desktop session to show notices: {why}") from failure
