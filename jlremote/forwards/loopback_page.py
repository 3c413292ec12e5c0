"""A page on the loopback that leads a confined browser to a session: once, and this user's only.

A browser of snap or Flatpak cannot read the redirect file in jlr's runtime folder (`browser`). All
users can read the page's address in the browser's arguments, so it answers only to sockets of this
user, which the kernel tells, and ends with its first answer. A page of elsewhere that leads a name
of its own here (DNS rebinding) is known by that name.

It is a process of its own, because the command ends before a browser has started: the target comes
on stdin, so that it is in no argument, and the page's address is printed.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from jlremote.place.host.addresses import LOCALHOST, is_own

# A first start of snap's Firefox takes half a minute on a slow disk.
LASTS_SECONDS = 90.0


def lend(target: str) -> str | None:
    """Start the process of a page that leads to `target`; return its address, `None` for none."""
    done = subprocess.run(
        (sys.executable, "-P", "-m", __name__),
        input=target,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout.strip() or None


def serve(target: str) -> None:
    """Answer one request of this user with a redirect to `target`, for a while."""
    path = f"/{secrets.token_urlsafe(24)}"

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get_all("Host") != [f"{LOCALHOST}:{server.server_port}"]:
                self.send_error(421)
                return
            table = Path("/proc/net/tcp").read_text(encoding="ascii")
            if self.path != path or not is_own(table, self.client_address[1], server.server_port):
                self.send_error(403)
                return
            self.send_response(303)
            self.send_header("Location", target)
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            threading.Thread(target=server.shutdown).start()

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer((LOCALHOST, 0), Page) as server:
        server.daemon_threads = True
        sys.stdout.write(f"http://{LOCALHOST}:{server.server_port}{path}\n")
        sys.stdout.flush()
        if os.fork():
            os._exit(0)  # `lend` waits for it
        os.close(sys.stdout.fileno())
        end = threading.Timer(LASTS_SECONDS, server.shutdown)
        end.daemon = True
        end.start()
        server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    serve(sys.stdin.read())
