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
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from jupyter_server.services.contents.handlers import ContentsHandler

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
      this.caught = new Map();  // by Output widget all that it got
      this.full = new Map();  // likewise, of cells that have ended
    }

    get hasWidgets() {
      return this.panel.content.rendermime.mimeTypes.includes(WIDGET);
    }

    look() {
      if (this.full.size) this.fill();
      const goesOn = [...this.runs.values()].some((run) => !run.ended);
      if (this.asks || !this.panel.context.isReady || (this.looks < 1 && !goesOn)) return;
      this.asks = true;
      this.looks -= 1;
      this.ask().catch((error) => console.warn("jlr:", error)).finally(() => (this.asks = false));
    }

    async ask() {
      const { context } = this.panel;
      const { at, kernel } = this;
      if ([...this.runs.values()].some((run) => !run.ended && run.model.isDisposed)) {
        return this.begin();  // the cell was moved, or the notebook read again
      }
      const { baseUrl, token } = this.panel.sessionContext.sessionManager.serverSettings;
      const path = context.path.split("/").map(encodeURIComponent).join("/");
      const little = "content=0&no_track_activity=1";
      const asked = `recorded=${at}&kernel=${kernel?.id}&widgets=${this.hasWidgets}&${little}`;
      const headers = token ? { Authorization: `token ${token}` } : {};
      const answer = await fetch(`${baseUrl}api/contents/${path}?${asked}`, { headers });
      if (!answer.ok) return;
      const [head, ...records] = (await answer.text()).split("\n");
      if (this.panel.isDisposed || this.at !== at || this.kernel !== kernel) return;
      const facts = JSON.parse(head);
      const unchanged = !context.model.dirty;
      if (facts.begins) this.begin(this.looks);
      this.at = facts.at;
      for (const record of records) if (record) this.take(JSON.parse(record), facts.begins);
      if (facts.begins && unchanged) context.model.dirty = false;
      this.quiet = records.length > 1 || kernel?.status !== "idle" ? 0 : this.quiet + 1;
      if (this.quiet > GIVE_UP) this.take({ kind: "kernel" });
    }

    take(record, begins = false) {
      const { kind, request, content } = record;
      const run = this.runs.get(request);
      const isCaught = record.widget && this.hasWidgets;
      if (run?.cell.outputArea?.future) this.runs.delete(request);  // the person has run it again
      else if (isCaught && (run || begins)) this.catch(record);
      else if (kind === "code") this.start(record);
      else if (kind === "update_display_data") this.update(content);
      else if (kind === "kernel" || (kind === "lost" && !run)) {
        for (const each of this.runs.values()) if (!each.ended) this.tell(each, kind);
      } else if (!run || isCaught) return;
      else if (["end", "lost"].includes(kind)) this.tell(run, kind);
      else if (kind === "clear_output") run.model.outputs.clear(content.wait);
      else this.add(run, { ...content, output_type: kind });
    }

    catch({ widget, request, kind, content }) {
      const caught = Object.assign(this.caught.get(widget) ?? { outputs: [] }, { request });
      this.caught.set(widget, caught);
      if (caught.clears || (kind === "clear_output" && !content.wait)) caught.outputs.length = 0;
      caught.clears = kind === "clear_output" && content.wait;
      if (kind !== "clear_output") caught.outputs.push({ ...content, output_type: kind });
    }

    // The kernel knows from pages what its Output widgets got. It brings them once it is idle.
    async fill() {
      const renderer = this.panel.content.rendermime.createRenderer(WIDGET);
      const manager = await renderer._manager?.promise;
      for (const [widget, outputs] of this.full) {
        if (!manager?.restoredStatus || !manager.has_model(widget)) continue;
        this.full.delete(widget);
        (await manager.get_model(widget)).set("outputs", outputs).save_changes();
      }
      renderer.dispose();
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
      const caught = [...this.caught].filter(([, each]) => each.request === run.request);
      if (this.kernel || !caught.length) this.shown.set(run.request, run.model);
      if (run.model.isDisposed) return;
      run.model.executionCount = kind === "end" ? run.count : null;
      run.model.executionState = "idle";
      if (kind === "end") run.cell.node.querySelector(".jlr-widget")?.remove();
      for (const [widget, { outputs }] of caught) {
        if (kind === "end") this.full.set(widget, outputs);
        else for (const output of outputs) this.add(run, output);
      }
    }

    add(run, output) {
      const { outputs } = run.model;
      const id = output.transient?.display_id;
      outputs.add(output);
      if (id && output.output_type === "display_data") {
        const place = { outputs, item: outputs.get(outputs.length - 1) };
        this.displays.set(id, [...(this.displays.get(id) ?? []), place]);
      }
      if (!output.data?.[WIDGET] || !this.hasWidgets) return;
      this.note(run, "earlier widgets come when the cell ends, if its kernel lives", "jlr-widget");
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

    note(run, what, kind = "jlr-lost") {
      const line = document.createElement("p");
      const notebook = `'${this.panel.context.path.replaceAll("'", "'\\''")}'`;
      line.className = kind;
      line.textContent = `jlr: ${what}; ` + "`" + `jlr output ${notebook}` + "` shows what is";
      run.cell.node.querySelector(`.${kind}`)?.remove();
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
      else reload.look();
    }
  }, PAUSE);
})();
</script>"""


class Unsaved:
    """The last run of each cell of a notebook, without those that its file has."""

    def __init__(self, notebook: str, kernel: str, saved_at: float, *, widgets: bool) -> None:
        self.notebook, self.kernel, self.saved_at = notebook, kernel, saved_at
        self.has_widgets = widgets  # whether the page can show some
        self._runs: dict[str, list[Record]] = {}  # by request
        self._open: dict[str, str] = {}  # by kernel its request
        self._of: dict[str, tuple[float, str]] = {}  # by cell the last run's beginning and request
        self._caught: dict[str, list[Record]] = {}  # by Output widget what it got of any cell

    def take(self, record: Record) -> None:
        kind, kernel = record["kind"], record["kernel"]
        request = record["request"] or (self._open.get(kernel) if kind == "lost" else None)
        if kind == "kernel":
            self._end(record)
        elif kind == "code" and record["cell"]:
            if self.notebook == record["notebook"] or self.kernel == kernel:
                self._begin(record)
        elif kind == "end" and self._open.get(kernel) == request:
            self._end(record)
        elif self.has_widgets and record.get("widget"):
            begin = {"kind": "", "content": {}}
            self._add(self._caught.setdefault(record["widget"], [begin]), record)
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
            last["request"] = record["request"]  # a widget may get text from several cells
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
        caught = [each[1:] for each in self._caught.values() if each[-1]["request"] in self._runs]
        runs = sorted(self._runs.values(), key=lambda run: float(run[0]["time"]))
        for each in (*caught, *runs):
            for record in each:
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


def lines_behind(folder: Path, kernel: str, at: str) -> Iterator[tuple[str, bytes]]:
    """Yield records behind a position, each with its own end; `LookupError` if that is gone."""
    inode, _, begin = at.partition(":")
    with ExitStack() as stack:
        for file in opened(folder, kernel, stack):
            own = str(os.fstat(file.fileno()).st_ino)  # as the file may get another name
            if inode not in ("", own):
                continue
            end = file.seek(int(begin or 0))
            inode = begin = ""
            for line in file:
                end += len(line)
                if line.endswith(b"\n"):
                    yield f"{own}:{end}", line
    if inode:
        raise LookupError(at)


def first(folder: Path, unsaved: Unsaved) -> tuple[str, bytes]:
    """Return where a kernel's records end, and those that its notebook's file does not have."""
    at = "0:0"
    for kernel, paths in pieces(folder).items():
        with suppress(FileNotFoundError):  # it has got another name
            if kernel != unsaved.kernel and paths[-1].stat().st_mtime < unsaved.saved_at:
                continue
        for end, line in lines_behind(folder, kernel, ""):
            at = end if kernel == unsaved.kernel else at
            with suppress(ValueError, LookupError, TypeError, AttributeError):
                unsaved.take(json.loads(line))
    return at, b"".join(json.dumps(record).encode() + b"\n" for record in unsaved.records())


def answer(folder: Path, unsaved: Unsaved, at: str) -> bytes:
    """Return where the records end, whether they begin anew, and a record a line."""
    try:
        begins, found = False, [(at, b""), *lines_behind(folder, unsaved.kernel, at)]
        now, records = found[-1][0], b"".join(line for _, line in found)
    except LookupError:
        begins, (now, records) = True, first(folder, unsaved)
    return json.dumps({"at": now, "begins": begins}).encode() + b"\n" + records


def show(file: str) -> None:
    """Let pages ask for records, and begin with the script that does."""
    handler: Any = ContentsHandler
    if int(version("jupyterlab").split(".")[0]) < 4:
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
            kernel, widgets = (self.get_query_argument(name, "") for name in ("kernel", "widgets"))
            path, saved_at = model["path"].strip("/"), model["last_modified"].timestamp()
            asked = folder, Unsaved(path, kernel, saved_at, widgets=widgets == "true"), at
            told = await asyncio.get_running_loop().run_in_executor(None, answer, *asked)
            self.set_header("Content-Type", "application/x-ndjson")
            self.finish(told)

    handler.get, handler._finish_model = get_or_tell, finish_or_wait
    handlers: Any = (JupyterHandler, ExtensionHandlerMixin)
    for each in handlers:
        each.page_script += SCRIPT
