"""Changes to a server's pages after a loss, and its silence outside its own path.

A page asks again where its request, or what its kernel said, was lost: when an address of the
machine changes, Chromium ends the requests that wait behind the six under way to one host, and
JupyterLab shows a dialog for each. So each page begins with a script in the place of `fetch`. With
each WebSocket to a kernel the script tells how many messages the page has received of that kernel;
see `resumption`.

Pages alone have a limit on the rate of what they are sent: Jupyter leaves out what a kernel prints
above 1 MB or 1,000 messages a second, as a browser could crash. The programs of `jlr local` get
all. Browsers say where their page is from, others do not.

Jupyter's error pages and headers name its `base_url`, and who knows that can ask for the cookie
that is kept to it. So nothing is answered outside that path.

It is for each server since Notebook 6, on Python 3.6 and newer. Notebook 6 itself does not `fetch`.
A page before JupyterLab 4 that is loaded while a cell runs says where output is; see `reloads`.
"""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from tornado.web import ErrorHandler

MOST_BYTES = 64 << 20  # that may wait in memory for a program

# A GET and a HEAD change nothing. A PUT has the same effect twice, but for a part of a large file,
# which Jupyter appends. A POST is left alone. jlr's own listener answers lists with `Retry-After`
# while many requests wait, to leave room for others.
SCRIPT = """\
<script>
(() => {
  const ask = window.fetch;
  const pauses = [500, 1000, 2000, 4000];  // ms after each failure
  const pass = (ms) => new Promise((done) => setTimeout(done, ms));
  const isPart = async (request) => /"chunk"\\s*:/.test(await request.text());

  const askAgain = async (request) => {
    for (let failures = 0; ; ) {
      const kept = request.clone();
      const began = Date.now();
      try {
        const answer = await ask.call(window, request);
        if (answer.status !== 504 || !answer.headers.has("Retry-After")) return answer;
        await pass(1000);
      } catch (error) {
        if (Date.now() - began > 250) failures = 0;  // it waited, so the listener is there
        const lost = error instanceof TypeError && failures < pauses.length;
        if (!lost || (kept.method === "PUT" && (await isPart(kept.clone())))) throw error;
        await pass(pauses[failures++]);
      }
      request = kept;
    }
  };

  window.fetch = function (input, init) {
    try {
      const request = new Request(input, init);
      const isOurs = new URL(request.url).origin === window.location.origin;
      if (isOurs && ["GET", "HEAD", "PUT"].includes(request.method)) return askAgain(request);
      input = request;
      init = undefined;
    } catch (error) {
      // what it cannot read, the browser's own `fetch` reads or refuses
    }
    return ask.call(window, input, init);
  };

  const received = new Map();  // by the WebSocket's path and the session that the page gives it
  window.WebSocket = class extends window.WebSocket {
    constructor(url, ...protocols) {
      let to = null;
      try {
        to = new URL(url, window.location.href);
      } catch (error) {
        // the browser's own WebSocket refuses it
      }
      const session = to && /\\/api\\/kernels\\/[^/]+\\/channels$/.test(to.pathname)
        ? to.searchParams.get("session_id") : null;
      if (session === null) {
        super(url, ...protocols);
        return;
      }
      const page = `${to.pathname} ${session}`;
      to.searchParams.set("received", received.get(page) || 0);
      super(to.href, ...protocols);
      this.addEventListener("message", () => received.set(page, (received.get(page) || 0) + 1));
    }
  };
})();
</script>"""

WHERE = """\
<script>
addEventListener("load", () => {
  const line = document.createElement("p");
  line.textContent = "A cell runs. What it printed before this page was loaded: `jlr output`";
  line.style = "position: fixed; right: 2em; bottom: 2em; z-index: 9999; background: #ffd";
  line.onclick = () => line.remove();
  document.body.append(line);
});
</script>"""


def where() -> str:
    """Return the script that says where output is if a page before JupyterLab 4 lacks some."""
    try:
        if int(import_module("jupyterlab").__version__.split(".")[0]) >= 4:
            return ""
    except ImportError:  # Notebook 6 alone
        pass
    running = Path(os.environ["JUPYTER_RUNTIME_DIR"]).parent / "output" / "running"
    return WHERE if running.is_file() and running.stat().st_size else ""


def ask_again(package: str) -> None:
    """Put the script into the pages of a server's package, `jupyter_server` or `notebook`."""
    handlers = import_module(package + ".base.handlers")
    if package == "notebook":
        begin_pages(handlers.IPythonHandler)
    else:
        begin_pages(handlers.JupyterHandler)
        begin_pages(import_module(package + ".extension.handler").ExtensionHandlerMixin)


def begin_pages(handler: Any) -> None:
    """Let the pages of a handler begin with the script, and with what `reloads` adds to it."""
    handler.page_script = SCRIPT
    render = handler.render_template

    def with_script(self: Any, name: str, **names: Any) -> Any:
        page = render(self, name, **names)
        if not isinstance(page, str) or SCRIPT in page:
            return page
        return page.replace("<head>", "<head>" + self.page_script + where(), 1)

    handler.render_template = with_script


def is_limited(handler: Any) -> bool:
    """Return whether a limit counts for a WebSocket: not for what has waited (`resumption`)."""
    stream = getattr(handler.ws_connection, "stream", None)
    waiting = len(getattr(stream, "_write_buffer", None) or "")
    counts = "Origin" in handler.request.headers or waiting > MOST_BYTES
    return counts and bool(getattr(handler, "limit_rate", True))


def limit_pages(package: str) -> None:
    """Limit the rate of pages alone in the server of a package."""
    kernels = package + ".services.kernels."
    try:
        channels: Any = import_module(kernels + "connection.channels")
    except ImportError:  # older than jupyter_server 2
        handler: Any = import_module(kernels + "handlers").ZMQChannelsHandler
        for name in ("iopub_msg_rate_limit", "iopub_data_rate_limit"):
            of = getattr(handler, name).fget
            none_or_it = lambda self, of=of: of(self) if is_limited(self) else 0  # noqa: E731
            setattr(handler, name, property(none_or_it))
        return
    connection = channels.ZMQChannelsWebsocketConnection
    limits = connection._limit_rate
    connection._limit_rate = lambda self, *message: (
        is_limited(self.websocket_handler) and limits(self, *message)
    )


def say_nothing_outside(package: str) -> None:
    """Let the server of a package answer 404 outside its own path."""
    is_old = package == "notebook"
    module = import_module(package + (".notebookapp" if is_old else ".serverapp"))
    application: Any = module.NotebookWebApplication if is_old else module.ServerWebApplication
    handlers = application.init_handlers

    def with_outside(self: Any, *arguments: Any) -> Any:
        outside = f"(?!{re.escape(arguments[-1]['base_url'])}).*"
        return [(outside, ErrorHandler, {"status_code": 404}), *handlers(self, *arguments)]

    application.init_handlers = with_outside
