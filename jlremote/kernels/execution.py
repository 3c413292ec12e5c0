"""`jlr exec`: run code in a kernel of a session, and report what it says as the recorder does.

A cell is asked for once, under an id that the recorder keeps, too: after a loss of the connection
the rest comes over the next one, or is in `jlr output`.
"""

from __future__ import annotations

import os
import queue
import shlex
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jlremote import errors
from jlremote.errors import Busy, JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.hosts.rollback import on_ctrl_c
from jlremote.jupyter.api import JupyterApi, Kernel, KernelSocket
from jlremote.kernels.remote_kernel import DEATHS, Message, RemoteKernel, encoded, reached
from jlremote.output.recorded_files import KINDS, Record
from jlremote.output.runs import new_run
from jlremote.questions import Question
from jlremote.text import one_line
from jlremote.times import in_words

# Jupyter knows a kernel of `jlr exec` by a path, as it knows that of a notebook: so the next
# command and other laptops find it, and `jlr list` and `jlr output` name it.
PATH = "jlr-exec"
_OUTPUTS = KINDS - {"code", "end", "kernel", "lost"}
_TURN_SECONDS = 1.0
_MOST_TRIES = 3  # before the first connection


@dataclass(frozen=True)
class ExecRequest:
    """What to run, and where."""

    selector: str | None
    cells: Sequence[str]
    notebook: str | None = None  # whose kernel runs it
    kind: str | None = None  # else the kind of the kernel, as Jupyter names it
    seconds: float | None = None  # after which the command ends, and the cell runs on
    waits: bool = True  # while the kernel is busy
    asks: bool = False  # whether `input()` can be answered


@dataclass(frozen=True)
class ExecPlace:
    """A session, by its host and name, and the kernel that runs the code."""

    session: str
    kernel: Kernel

    def rest(self, run: str, option: str = "") -> str:
        """Return the command that shows what a run printed."""
        return f"jlr output {option}{shlex.quote(self.session)} {run}"

    def to_json(self) -> dict[str, Any]:
        host, _, name = self.session.rpartition("/")
        kernel = self.kernel
        return {"host": host, "name": name, "notebook": kernel.notebook, "kernel": kernel.id}


def execute(request: ExecRequest, context: Context) -> tuple[ExecPlace, Generator[Record]]:
    """Return where cells run, and what they say: the records of each until its end.

    The records end with the first cell that fails. Ctrl-C interrupts the cell, a second one leaves
    it running. Raise `Busy` if the kernel is busy or the time is over, and `JlrError` if the kernel
    ended or the connection lost what it said.
    """
    session, api = reached(request.selector, context)
    if request.notebook is None:
        kernel = of_exec(api, context, request.kind)
    else:
        kernel = of_notebook(request.notebook, api)
    place = ExecPlace(session.selector, kernel)
    if kernel.state == "busy" and not request.waits:
        hint = f"leave out `--no-wait` to wait, or see `jlr output -f {session.selector}`"
        raise Busy(f"the kernel of `{one_line(kernel.notebook)}` is busy", hint=hint)
    return place, _Execution(place, api, request, context).records()


def interrupt(
    selector: str | None, notebook: str | None, kind: str | None, context: Context
) -> ExecPlace:
    """Interrupt what runs in the kernel of `jlr exec`, or in a notebook's; return where that is."""
    session, api = reached(selector, context)
    kernel = of_notebook(notebook or path_of(kind), api)
    api.interrupt_kernel(kernel.id)
    return ExecPlace(session.selector, kernel)


def execute_in(
    kernel: str, api: JupyterApi, request: ExecRequest, context: Context
) -> Generator[Record]:
    """Yield what cells say in a kernel that no other client uses; Ctrl-C ends this command."""
    place = ExecPlace(str(request.selector), Kernel("", "idle", "", id=kernel))
    return _Execution(place, api, request, context).told()


class _Execution:
    """The cells of a request, of which one runs."""

    def __init__(
        self, place: ExecPlace, api: JupyterApi, request: ExecRequest, context: Context
    ) -> None:
        self._place, self._api, self._request, self._context = place, api, request, context
        self._kernel = RemoteKernel(place.kernel.id, api, self._reach, lambda: None)
        self._until = None if request.seconds is None else time.monotonic() + request.seconds
        self._socket: KernelSocket | None = None
        self._waits = place.kernel.state == "busy"
        self._question = ""  # after whose answer an earlier request is not answered any more
        self._code = self._run = ""
        self._sent = self._begun = self._asking = False
        self._idle, self._status = False, ""  # what the kernel said of the run's end
        self._reply: dict[str, Any] | None = None  # an answer that may not have arrived
        self._unheard = 0  # events from before it
        self._repeats = False
        self._torn = False  # whether some of the run may be lost
        self._interrupts = 0
        self._told_loss = False
        self._tries = 0  # to come back

    def records(self) -> Generator[Record]:
        """Yield what the cells say, heed Ctrl-C, and tell what goes on where it is not read."""
        try:
            with on_ctrl_c(self._interrupted):
                yield from self.told()
        except GeneratorExit:
            if not self._interrupts:
                self._context.progress.note("; ".join(self._goes_on()))
            raise

    def told(self) -> Generator[Record]:
        self._kernel.begin()
        if self._waits:
            self._context.progress.note("the kernel is busy; waiting for the cell that runs")
        try:
            for code in self._request.cells:
                yield from self._records_of(code)
                if self._status != "ok":
                    return
        finally:
            if self._socket is not None:
                self._kernel.leave(self._socket)

    def _records_of(self, code: str) -> Iterator[Record]:
        self._code, self._run = code, new_run()
        self._sent = self._begun = self._idle = self._torn = False
        self._status = self._question = ""
        if self._socket is not None:
            self._send_code()
        while not (self._status == "aborted" or (self._status and self._idle)):
            event = self._next()
            if isinstance(event, KernelSocket):
                self._connected(event)
            elif isinstance(event, JlrError) or event.content.get("execution_state") in DEATHS:
                if self._sent:
                    yield self._record("kernel", {"state": "ended"})
                raise self._ended(getattr(event, "message", "its kernel died or was restarted"))
            elif (record := self._heard(event)) is not None:
                yield record
        if self._status == "aborted":
            aborted = "the kernel did not run the code, as a cell before it failed"
            raise JlrError(aborted, hint="run it again")
        yield self._record("end", {"status": self._status})
        if self._torn:
            raise self._lost(f"perhaps some of what `{self._run}` printed")

    def _next(self) -> KernelSocket | Message | JlrError:
        while True:
            left = _TURN_SECONDS if self._until is None else self._until - time.monotonic()
            try:
                return self._kernel.events.get(timeout=max(0, min(left, _TURN_SECONDS)))
            except queue.Empty:
                if self._repeats and self._reply is not None:
                    self._send("input_reply", self._reply, channel="stdin")
                self._repeats = False
                if self._until is not None and left <= 0:
                    after = in_words(round(self._request.seconds or 0))
                    goes_on, *shows = self._goes_on()
                    raise Busy(f"after {after}: {goes_on}", hint="".join(shows)) from None

    def _ended(self, why: str) -> JlrError:
        if not self._sent:
            return JlrError(f"the code was not run: {why}", hint="`jlr logs` may say why")
        shows = f"`{self._place.rest(self._run)}` shows what it printed"
        return JlrError(f"`{self._run}` has ended: {why}", hint=shows)

    def _lost(self, what: str) -> JlrError:
        shows = f"`{self._place.rest(self._run)}` shows what is recorded of it"
        return JlrError(f"the connection was lost, and {what}", hint=shows)

    def _connected(self, socket: KernelSocket) -> None:
        self._socket, self._told_loss = socket, False
        # Our server first sends what a loss kept back: what the kernel did with the last answer, if
        # it has it. Any other may lose that, and the kernel take the repeated one for a later one.
        self._repeats = self._api.server.ours
        self._torn = self._sent and not self._repeats
        if self._sent or self._waits:
            self._question = self._send("kernel_info_request", {})
        else:
            self._send_code()

    def _send_code(self) -> None:
        self._sent = True  # also if that fails: the kernel may have it
        content = {
            "code": self._code,
            "silent": False,
            "store_history": True,
            "allow_stdin": self._request.asks,
            "stop_on_error": False,  # the cells that wait may be a page's
        }
        self._send("execute_request", content, ident=self._run)

    def _send(
        self, kind: str, content: dict[str, Any], channel: str = "shell", ident: str = ""
    ) -> str:
        header = {"msg_id": ident or os.urandom(16).hex(), "msg_type": kind, "version": "5.3"}
        assert self._socket is not None
        message = Message(channel, header, {}, {}, content, [])
        with suppress(JlrError):  # the next connection asks what became of the run
            self._socket.send(encoded(message))
        return message.id

    def _heard(self, message: Message) -> Record | None:
        """Follow a message of the kernel; return what is to be told of it."""
        if message.channel == "shell" and message.request == self._question:
            if self._sent:
                raise self._lost(f"with it how `{self._run}` ended")
            self._send_code()
            self._waits = False
        self._unheard -= 1
        if message.request != self._run:
            return None
        if self._unheard < 0:
            self._reply = None
        if message.kind == "input_request":
            self._answer(message.content)
        elif message.kind == "execute_reply":
            self._status = str(message.content.get("status"))
        elif message.kind == "status":
            self._idle = message.content.get("execution_state") == "idle"
            self._begun = True
        elif message.kind == "execute_input":
            return self._record("code", {**message.content, "code": self._code})
        elif message.kind in _OUTPUTS:
            return self._record(message.kind, message.content)
        return None

    def _record(self, kind: str, content: dict[str, Any]) -> Record:
        kernel = self._place.kernel
        return Record(time.time(), kernel.id, kind, kernel.notebook, None, self._run, content)

    def _answer(self, asked: dict[str, Any]) -> None:
        """Ask the person for what `input()` waits for; Ctrl-D ends the input."""
        self._asking = True
        prompt, secret = str(asked.get("prompt", "")), bool(asked.get("password"))
        try:
            typed = self._context.asker.ask(Question("input", prompt, echo=not secret))
        except errors.NeedsAuthentication:
            typed = "\x04"  # for which a kernel raises EOFError
        except KeyboardInterrupt:
            self._interrupt()
            return
        finally:
            self._asking = False
        self._reply, self._unheard = {"value": typed}, self._kernel.events.qsize()
        self._send("input_reply", self._reply, channel="stdin")

    def _interrupted(self) -> None:
        if self._asking:
            raise KeyboardInterrupt
        if not self._begun or self._interrupts:
            self._interrupts += 1
            raise KeyboardInterrupt("; ".join(self._goes_on()))
        self._interrupt()

    def _goes_on(self) -> tuple[str, ...]:
        """Return what becomes of the code, and the command that shows it."""
        if not self._sent:
            return (f"the code was not run: the kernel is {'busy' if self._waits else 'silent'}",)
        goes_on = "runs on" if self._begun else "waits for another cell, and will run"
        return f"`{self._run}` {goes_on}", f"`{self._place.rest(self._run, '-f ')}` shows the rest"

    def _interrupt(self) -> None:
        """Interrupt the cell in a thread: output comes meanwhile, and the host may be away."""
        self._interrupts += 1

        def run() -> None:
            note = self._context.progress.note
            note("interrupting the cell; Ctrl-C again leaves it running")
            try:
                self._api.interrupt_kernel(self._place.kernel.id)
            except JlrError as failure:
                note(f"cannot interrupt it: {failure.message}")

        threading.Thread(target=run, daemon=True).start()

    def _reach(self) -> JupyterApi:
        """Return the way to Jupyter after a loss; raise `NotFound` where the session has ended."""
        try:
            _, api = reached(self._place.session, self._context)
        except (errors.Unreachable, errors.Authentication) as lost:
            if isinstance(lost, errors.Unreachable) and not self._told_loss:
                self._told_loss = True
                self._context.progress.note(f"{lost.message}; `{self._run}` goes on; trying again")
            raise
        except JlrError as ended:
            raise NotFound(ended.message, hint=ended.hint) from ended
        self._tries += 1
        if self._socket is None and self._tries > _MOST_TRIES:
            raise NotFound("no WebSocket to the kernel can be opened")
        self._api = api
        return api


def path_of(kind: str | None) -> str:
    """Return the path by which Jupyter knows the kernel of `jlr exec`, `None` for the default."""
    return PATH if kind is None else f"{PATH}-{kind}"


def of_exec(api: JupyterApi, context: Context, kind: str | None = None) -> Kernel:
    """Return the kernel of `jlr exec`, which may be new; raise `NotFound` without its kind."""
    path = path_of(kind)
    known = _first(api, path)
    if known is not None and known.state not in DEATHS:
        return known
    if kind is not None:
        api.refuse_unknown(kind, "`--kernel` takes one of those")
    with context.progress.step("Start a kernel"):
        if known is not None and known.state == "dead":
            api.end_kernel(known.id)
        started = api.start_kernel(kind, path=path)
    known = _first(api, path)
    if known is None:
        raise JlrError("the kernel ended when it had begun", hint="`jlr logs` may say why")
    if known.id != started:  # another command was first
        with suppress(JlrError):
            api.end_kernel(started)
    return known


def _first(api: JupyterApi, path: str) -> Kernel | None:
    return next((each for each in api.kernels_with_paths() if each.notebook == path), None)


def of_notebook(typed: str, api: JupyterApi) -> Kernel:
    """Return the kernel of a notebook by its path or the end of it; raise for none or several."""
    from jlremote.output.reading import chosen  # it loads much that no other kernel needs

    known = {each.notebook: each for each in reversed(api.kernels_with_paths())}
    starts = "its page starts one, which `jlr open` opens"
    return known[chosen(typed, known, "no kernel runs for", starts)]
