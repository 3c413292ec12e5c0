"""Let a page ask again where its request, or what its kernel said, was lost on the way.

When an address of the machine changes, Chromium ends the requests that wait behind the six which it
has under way to one host, and JupyterLab shows a dialog for each. So each page of the server begins
with a script in the place of `fetch`, which JupyterLab takes up only later. A labextension would
need a folder of its own and be listed to the user.

With each WebSocket to a kernel the script tells how many messages the page has received of that
kernel; see `resumption`. A browser hands out no message after a page has closed its WebSocket, so
what the script counts is what the page has.

It is for each server since Notebook 6, on Python 3.6 and newer. Notebook 6 itself does not `fetch`.
"""

from importlib import import_module
from typing import Any

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


def ask_again(package: str) -> None:
    """Put it into the pages of the server of that package, `jupyter_server` or `notebook`."""
    handlers = import_module(package + ".base.handlers")
    if package == "notebook":
        begin_pages(handlers.IPythonHandler)
    else:
        begin_pages(handlers.JupyterHandler)
        begin_pages(import_module(package + ".extension.handler").ExtensionHandlerMixin)


def begin_pages(handler: Any) -> None:
    """Let the pages of a handler begin with the script, once."""
    if "asks_again" in vars(handler):  # the configuration was read twice
        return
    handler.asks_again = True
    render = handler.render_template

    def with_script(self: Any, name: str, **names: Any) -> Any:
        page = render(self, name, **names)
        if not isinstance(page, str) or SCRIPT in page:
            return page
        return page.replace("<head>", "<head>" + SCRIPT, 1)

    handler.render_template = with_script
