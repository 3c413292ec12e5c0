"""What cells printed before a page was loaded, for JupyterLab 4 and Notebook 7.

A page gets what its kernel publishes from its own beginning on; what came before is in the
recorder's files. So each page begins with a script, which asks for a notebook's records with
`api/contents/NOTEBOOK?recorded=AT`: first for the last run of each cell that the notebook's file
does not have, then for all that is recorded behind AT. It puts them into the cells as JupyterLab
does with messages. Of a cell that another page has run, nothing comes by the WebSocket: so nothing
is missing where record and WebSocket would meet, and nothing comes twice.

The notebook's file stays as it is: what the page shows is written when the page saves.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from jupyter_server.services.contents.handlers import ContentsHandler

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = re.compile(r"(.+?)(?:\.(\d+))?\.jsonl")
SHOWN = ("stream", "display_data", "execute_result", "error")
Record = Any  # a document of the recorder's

# A look every half second costs nothing while no other page's cell runs.
SCRIPT = r"""<script>
(() => {
  const PAUSE = 500;  // ms between two looks
  const NEWS = 6;  // looks after the last news
  const GIVE_UP = 120;  // looks after which a cell is over whose kernel is idle
  const WIDGET = "application/vnd.jupyter.widget-view+json";

  class Reload {
    constructor(panel) {
      this.panel = panel;
      this.shown = new Map();  // by request the cell's model that has all of it
      panel.sessionContext.kernelChanged.connect(() => this.begin());
      panel.sessionContext.iopubMessage.connect((_, message) => {
        if (message.parent_header.session !== this.kernel?.clientId) this.looks = NEWS;
      });
      this.begin();
    }

    get kernel() {
      return this.panel.sessionContext.session?.kernel;
    }

    begin(looks = NEWS) {
      this.at = "0:0";
      this.looks = looks;
      this.quiet = 0;
      this.runs = new Map();  // by request
      this.displays = new Map();  // by id their places
    }

    goesOn() {
      return [...this.runs.values()].some((run) => !run.ended);
    }

    async look() {
      if (this.asks || !this.panel.context.isReady || (this.looks < 1 && !this.goesOn())) return;
      this.asks = true;
      try {
        this.looks -= 1;
        await this.ask();
      } finally {
        this.asks = false;
      }
    }

    async ask() {
      const { context } = this.panel;
      const { at, kernel } = this;
      if ([...this.runs.values()].some((run) => !run.ended && run.model.isDisposed)) {
        return this.begin();  // the cell was moved, or the notebook read again
      }
      const { baseUrl, token } = this.panel.sessionContext.sessionManager.serverSettings;
      const path = context.path.split("/").map(encodeURIComponent).join("/");
      const asked = `recorded=${at}&kernel=${kernel?.id ?? ""}&content=0&no_track_activity=1`;
      const headers = token ? { Authorization: `token ${token}` } : {};
      const answer = await fetch(`${baseUrl}api/contents/${path}?${asked}`, { headers });
      if (!answer.ok) return;
      const [head, ...records] = (await answer.text()).split("\n");
      if (this.panel.isDisposed || this.at !== at || this.kernel !== kernel) return;
      const facts = JSON.parse(head);
      const unchanged = !context.model.dirty;
      if (facts.begins) this.begin(this.looks);
      this.at = facts.at;
      for (const record of records) if (record) this.take(JSON.parse(record));
      if (facts.begins && unchanged) context.model.dirty = false;
      this.quiet = records.length > 1 || kernel?.status !== "idle" ? 0 : this.quiet + 1;
      if (this.quiet > GIVE_UP) this.take({ kind: "kernel" });
    }

    take(record) {
      const { kind, request, content } = record;
      const run = this.runs.get(request);
      if (run?.cell.outputArea?.future) this.runs.delete(request);  // the person has run it again
      else if (kind === "code") this.start(record);
      else if (kind === "update_display_data") this.update(content);
      else if (kind === "kernel" || (kind === "lost" && !run)) {
        for (const each of this.runs.values()) if (!each.ended) this.tell(each, kind);
      } else if (!run) return;
      else if (["end", "lost"].includes(kind)) this.tell(run, kind);
      else if (kind === "clear_output") run.model.outputs.clear(content.wait);
      else this.add(run, { ...content, output_type: kind });
    }

    start({ cell: id, request, content }) {
      const cell = this.panel.content.widgets.find((each) => each.model.id === id);
      const model = cell?.model;
      if (model?.type !== "code" || model.sharedModel.getSource() !== content.code) return;
      if (content.client === this.kernel?.clientId || cell.outputArea?.future) return;
      if (this.shown.get(request) === model) return;
      model.clearExecution();
      model.trusted = true;  // as of each cell that a page runs
      model.executionState = "running";
      this.runs.set(request, { cell, model, request, count: content.execution_count });
    }

    tell(run, kind) {
      if (kind === "lost") return this.note(run, "some of its output was not recorded");
      run.ended = true;
      this.shown.set(run.request, run.model);
      if (run.model.isDisposed) return;
      run.model.executionCount = kind === "end" ? run.count : null;
      run.model.executionState = "idle";
    }

    add(run, output) {
      const { outputs } = run.model;
      const id = output.transient?.display_id;
      outputs.add(output);
      if (id && output.output_type === "display_data") {
        const place = { outputs, item: outputs.get(outputs.length - 1) };
        this.displays.set(id, [...(this.displays.get(id) ?? []), place]);
      }
      if (output.data?.[WIDGET]) this.note(run, "the state of a widget is not recorded");
    }

    update(content) {
      for (const place of this.displays.get(content.transient?.display_id) ?? []) {
        const { outputs } = place;
        for (let at = 0; !outputs.isDisposed && at < outputs.length; at++) {
          if (outputs.get(at) !== place.item) continue;
          outputs.set(at, { ...content, output_type: "display_data" });
          place.item = outputs.get(at);
        }
      }
    }

    note(run, what) {
      const line = document.createElement("p");
      const notebook = `'${this.panel.context.path.replaceAll("'", "'\\''")}'`;
      line.className = "jlr-note";
      line.textContent = `jlr: ${what}; ` + "`" + `jlr output ${notebook}` + "` shows what is";
      run.cell.node.querySelector(".jlr-note")?.remove();
      run.cell.node.append(line);
      run.model.outputs.changed.connect((_, change) => change.type === "clear" && line.remove());
    }
  }

  const reloads = new Map();  // by the notebook's panel
  setInterval(() => {
    for (const panel of window.jupyterapp?.shell?.widgets("main") ?? []) {
      if (!panel.sessionContext || !panel.content?.model?.cells) continue;
      if (!reloads.has(panel)) reloads.set(panel, new Reload(panel));
    }
    for (const [panel, reload] of reloads) {
      if (panel.isDisposed) reloads.delete(panel);
      else reload.look().catch((error) => console.warn("jlr:", error));
    }
  }, PAUSE);
})();
</script>"""


class Unsaved:
    """The last run of each cell of a notebook, without those that its file has."""

    def __init__(self, notebook: str, kernel: str, saved_at: float) -> None:
        self.notebook, self.kernel, self.saved_at = notebook, kernel, saved_at
        self._runs: dict[str, list[Record]] = {}  # by request
        self._open: dict[str, str] = {}  # by kernel its request
        self._of: dict[str, tuple[float, str]] = {}  # by cell the last run's beginning and request

    def take(self, record: Record) -> None:
        """Add a record."""
        kind, kernel, request = record["kind"], record["kernel"], record["request"]
        if kind == "lost":
            request = request or self._open.get(kernel)
        if kind == "kernel":
            self._end(record)
        elif kind == "code" and record["cell"]:
            if self.notebook == record["notebook"] or self.kernel == kernel:
                self._begin(record)
        elif kind == "end" and self._open.get(kernel) == request:
            self._end(record)
        elif request in self._runs:
            self._add(self._runs[request], record)

    def _begin(self, record: Record) -> None:
        """Begin a run, in the place of the cell's last one; kernels come in no order of time."""
        self._end(record)
        kernel, cell, request = record["kernel"], record["cell"], record["request"]
        since, before = self._of.get(cell, (0, ""))
        if record["time"] >= since:
            self._runs.pop(before, None)
            self._of[cell], self._open[kernel] = (record["time"], request), request
            self._runs[request] = [record]

    def _add(self, run: list[Record], record: Record) -> None:
        """Add a record to a run, without what it takes away again."""
        kind, content, last = record["kind"], record["content"], run[-1]
        same = content.get("transient") == last["content"].get("transient")  # display
        if kind in SHOWN and last["kind"] == "clear_output":
            run[1:] = [each for each in run[1:] if each["kind"] not in (*SHOWN, "clear_output")]
        elif kind == last["kind"] == "stream" and content["name"] == last["content"]["name"]:
            last["content"].setdefault("more", []).append(content["text"])
            return
        elif kind == last["kind"] == "update_display_data" and same:
            run.pop()
        run.append(record)

    def _end(self, record: Record) -> None:
        """End the run of a kernel; forget it if the file was saved after it."""
        request = self._open.pop(record["kernel"], "")
        if request in self._runs:
            self._runs[request].append({**record, "kind": "end", "request": request})
            if record["time"] <= self.saved_at:
                del self._runs[request]

    def records(self) -> Iterator[Record]:
        """Yield the records of the runs, the first one first; no other kernel's goes on."""
        for kernel in set(self._open) - {self.kernel}:
            self._end({"time": float("inf"), "kernel": kernel, "content": {}})
        for run in sorted(self._runs.values(), key=lambda run: float(run[0]["time"])):
            for record in run:
                if record["kind"] == "stream":
                    content = record["content"]
                    text = settled(content["text"] + "".join(content.pop("more", ())))
                    record = {**record, "content": {**content, "text": text}}
                yield record


def settled(text: str) -> str:
    """Leave out of a stream what it has overwritten itself, as a progress bar of hours."""
    if "\r" not in text or "\b" in text:
        return text
    lines = []
    for line in text.split("\n"):
        signs, at = "", 0
        for part in line.split("\r"):
            signs, at = part + signs[len(part) :], len(part)
        lines.append(signs)
    # What follows goes on at the cursor.
    return "\n".join(lines) + ("\r" + signs[:at] if at < len(signs) else "")


def pieces(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each kernel's records, the oldest first."""
    named = [found for each in folder.iterdir() for found in [PIECE.fullmatch(each.name)] if found]
    found: dict[str, list[Path]] = {}
    for each in sorted(named, key=lambda each: float(each[2] or "inf")):
        found.setdefault(each[1], []).append(folder / each[0])
    return found


def opened(folder: Path, kernel: str, stack: ExitStack) -> list[BinaryIO]:
    """Open the files of a kernel's records, all of the same moment."""
    while True:
        paths = pieces(folder).get(kernel, [])
        with suppress(FileNotFoundError):  # it has got another name, or was the oldest
            files: list[BinaryIO] = [stack.enter_context(path.open("rb")) for path in paths]
            if pieces(folder).get(kernel, []) == paths:
                return files


def lines_of(file: BinaryIO, begin: int = 0) -> Iterator[bytes]:
    """Yield the whole lines of a file."""
    file.seek(begin)
    for line in file:
        if line.endswith(b"\n"):
            yield line


def position(file: BinaryIO, read: int) -> str:
    """Return the position behind that many bytes of a file, which may get another name."""
    return f"{os.fstat(file.fileno()).st_ino}:{read}"


def first(folder: Path, notebook: str, kernel: str, saved_at: float) -> tuple[str, bytes]:
    """Return the records of what a notebook's file does not have, and where its kernel's end."""
    unsaved, at = Unsaved(notebook, kernel, saved_at), "0:0"
    for name in pieces(folder):
        with ExitStack() as stack:
            files = opened(folder, name, stack)
            if name != kernel and os.fstat(files[-1].fileno()).st_mtime < saved_at:
                continue
            for file in files:
                read = 0
                for line in lines_of(file):
                    read += len(line)
                    with suppress(ValueError, LookupError, TypeError, AttributeError):
                        unsaved.take(json.loads(line))
                if name == kernel:
                    at = position(file, read)
    return at, b"".join(json.dumps(record).encode() + b"\n" for record in unsaved.records())


def behind(folder: Path, kernel: str, at: str) -> tuple[str, bytes]:
    """Return a kernel's records behind a position; raise `LookupError` if that is gone."""
    inode, _, begin = at.partition(":")
    now, found = "", b""
    with ExitStack() as stack:
        for file in opened(folder, kernel, stack):
            if now or position(file, 0) == f"{inode}:0":
                read = 0 if now else int(begin)
                new = b"".join(lines_of(file, read))
                now, found = position(file, read + len(new)), found + new
    if not now:
        raise LookupError(at)
    return now, found


def answer(folder: Path, notebook: str, kernel: str, saved_at: float, at: str) -> bytes:
    """Return where the records end, whether they begin anew, and a record a line."""
    try:
        begins, (now, found) = False, behind(folder, kernel, at)
    except LookupError:
        begins, (now, found) = True, first(folder, notebook, kernel, saved_at)
    return json.dumps({"at": now, "begins": begins}).encode() + b"\n" + found


def show(file: str) -> None:
    """Let pages ask for records, and begin with the script that does."""
    handler: Any = ContentsHandler
    if hasattr(handler, "asked_for_records") or int(version("jupyterlab").split(".")[0]) < 4:
        return
    handler.asked_for_records = None
    get, finish, folder = handler.get, handler._finish_model, Path(file)

    def finish_or_wait(self: Any, model: Any, location: bool = True) -> None:
        asked = self.request.method == "GET" and self.get_query_argument("recorded", "")
        if re.fullmatch(r"\d{1,20}:\d{1,20}", asked or ""):
            self.asked_for_records = model, asked
        else:
            finish(self, model, location)

    async def get_or_tell(self: Any, path: str = "") -> None:
        await get(self, path)  # which refuses those who may not read the notebook
        if self.asked_for_records is not None:
            model, at = self.asked_for_records
            kernel, saved_at = self.get_query_argument("kernel", ""), model["last_modified"]
            asked = folder, model["path"].strip("/"), kernel, saved_at.timestamp(), at
            told = await asyncio.get_running_loop().run_in_executor(None, answer, *asked)
            self.set_header("Content-Type", "application/x-ndjson")
            self.finish(told)

    handler.get, handler._finish_model = get_or_tell, finish_or_wait
    for each in (JupyterHandler, ExtensionHandlerMixin):
        begin_pages(each)


def begin_pages(handler: Any) -> None:
    """Let the pages of a handler that are applications of JupyterLab's begin with the script."""
    render = handler.render_template

    def with_script(self: Any, name: str, **names: Any) -> Any:
        page = render(self, name, **names)
        if not isinstance(page, str) or SCRIPT in page or "jupyter-config-data" not in page:
            return page
        return page.replace("<head>", "<head>" + SCRIPT, 1)

    handler.render_template = with_script
