"""Web sites on this machine: hostile ones, and servers whose login is as Jupyter's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from playwright.sync_api import BrowserContext, Page

from jlremote.place.host.addresses import own_address
from tests.lab.ports import free_port

# Every way in which a page makes the browser ask without leaving the page, and `url` is asked.
ASK = """async url => {
  const asked = element => new Promise(done => {
    element.onload = element.onerror = done
    document.body.append(element)
  })
  const made = (tag, facts) => Object.assign(document.createElement(tag), facts)
  await fetch(url, {credentials: 'include', mode: 'no-cors'}).catch(() => 0)
  await fetch(url, {credentials: 'include', mode: 'no-cors', method: 'POST'}).catch(() => 0)
  await asked(made('img', {src: url}))
  await asked(made('script', {src: url}))
  await asked(made('iframe', {src: url}))
  const frame = made('iframe', {name: 'frame'})
  await asked(frame)
  const form = made('form', {action: url, method: 'POST', target: 'frame'})
  document.body.append(form)
  const answered = new Promise(done => frame.onload = done)
  form.submit()
  await answered
  frame.remove()
  await new Promise(done => {
    const socket = new WebSocket(url.replace('http', 'ws'))
    socket.onerror = socket.onclose = done
  })
}"""
# It answers every page of its origin in the server's place, for as long as the browser keeps it.
SERVICE_WORKER = """
self.addEventListener('install', event => event.waitUntil(self.skipWaiting()))
self.addEventListener('activate', event => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', event => event.respondWith(new Response('of the service worker')))
"""
REGISTER = (
    "navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)"
)


def opened(chromium: BrowserContext, url: str) -> Page:
    """Return a new page, as a person, or a link of a hostile page, opens it."""
    page = chromium.new_page()
    page.goto(url)
    return page


@dataclass(frozen=True)
class Request:
    path: str
    host: str  # the name in the address, without the port
    cookie: str


@dataclass
class Site:
    """A site on a port of 127.0.0.1.

    Its login is at `base` and answers with a cookie for that path; its page's text is `word`.
    """

    port: int
    word: str
    base: str = "/"
    headers: list[tuple[str, str]] = field(default_factory=list)  # of all answers
    asked: list[Request] = field(default_factory=list)

    def was_sent(self, cookie: str) -> bool:
        """Return whether it was sent a cookie."""
        return any(cookie in request.cookie for request in self.asked)


@contextmanager
def site(word: str, port: int | None = None, base: str = "/") -> Iterator[Site]:
    """Serve a site where a forward listens."""
    made = Site(free_port() if port is None else port, word, base)
    with ExitStack() as stack:
        for address in ("127.0.0.1", own_address(made.port)):
            there = ThreadingHTTPServer((address, made.port), _handler(made))
            server = stack.enter_context(there)
            Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
        yield made


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.headers["Host"].partition(":")[0]
            site.asked.append(Request(self.path, name, self.headers["Cookie"] or ""))
            script = self.path == "/worker.js"
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if script else "text/html")
            if self.path.partition("?")[2].startswith("token="):
                self.send_header("Set-Cookie", f"login={site.word}; HttpOnly; Path={site.base}")
            for header in site.headers:
                self.send_header(*header)
            self.end_headers()
            self.wfile.write((SERVICE_WORKER if script else site.word).encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    return Handler
