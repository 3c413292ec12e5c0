"""Keep for each page of a kernel what comes while its connection is lost.

Jupyter keeps it for the last connection to go, and drops it once one of another page comes. Two
pages of a notebook, a console beside it, and JupyterLab 2 and 3, which have two connections to each
kernel, would lose it so. A connection that its page has closed is left as Jupyter has it.

It is for each server since Notebook 6, on Python 3.6 and newer.
"""
# ruff: noqa: UP006, UP035 - Python 3.6 has no newer form of these

from functools import partial
from importlib import import_module
from typing import Any, Dict, List

from tornado.ioloop import IOLoop

MOST_BYTES = 64 << 20  # of a page; then the older half goes
MOST_PAGES = 8  # of a kernel
STALE_SECONDS = 3600  # for which a page is waited for while another one is there


class Buffers:
    """What Jupyter keeps, by kernel and connection; the manager itself has the last one."""

    def __init__(self, manager: Any) -> None:
        self.start, self.get, self.stop = (
            manager.start_buffering,
            manager.get_buffer,
            manager.stop_buffering,
        )
        self.aside: Dict[str, Dict[str, Any]] = {}

    def put_aside(self, manager: Any, kernel: str) -> None:
        """Take what the manager keeps out of its way, if its page may come back."""
        kept = manager._kernel_buffers.get(kernel)
        if kept is None or not kept.get("lost"):
            return
        pages = self.aside.setdefault(kernel, {})
        pages[kept["session_key"]] = manager._kernel_buffers.pop(kernel)
        while len(pages) > MOST_PAGES:
            drop(pages.pop(next(iter(pages))))

    def begin(self, manager: Any, kernel: str, page: str, channels: Dict[str, Any]) -> None:
        """Keep what comes for a page from now on."""
        self.put_aside(manager, kernel)
        others = self.aside.pop(kernel, {})  # the manager drops what it knows
        self.start(manager, kernel, page, channels)
        if others:
            self.aside[kernel] = others
        kept = manager._kernel_buffers.get(kernel)
        if kept is None or kept["channels"] is not channels:  # Jupyter is told to keep nothing
            return
        kept["ports"] = manager.get_kernel(kernel).ports
        size = [0]

        def take(channel: str, message: List[bytes]) -> None:
            kept["buffer"].append((channel, message))
            size[0] += sum(map(len, message))
            if size[0] > MOST_BYTES:
                del kept["buffer"][: len(kept["buffer"]) // 2 + 1]
                size[0] = sum(len(part) for _, parts in kept["buffer"] for part in parts)

        for channel, stream in channels.items():
            stream.on_recv(partial(take, channel))
        IOLoop.current().call_later(STALE_SECONDS, self.end_stale, manager, kernel, page, kept)

    def end_stale(self, manager: Any, kernel: str, page: str, kept: Any) -> None:
        """Drop what a page has not come back for; wait on while none is there."""
        is_aside = self.aside.get(kernel, {}).get(page) is kept
        if not is_aside and manager._kernel_buffers.get(kernel) is not kept:
            return
        if not manager._kernel_connections.get(kernel):
            IOLoop.current().call_later(STALE_SECONDS, self.end_stale, manager, kernel, page, kept)
        elif is_aside:
            drop(self.aside[kernel].pop(page))
        else:
            self.stop(manager, kernel)

    def take_up(self, manager: Any, kernel: str, page: str) -> Any:
        """Return what is kept for a page that has come, `None` for nothing."""
        kept = manager._kernel_buffers.get(kernel)
        if kept is not None and kept["session_key"] != page:
            self.put_aside(manager, kernel)
        mine = self.aside.get(kernel, {}).pop(page, None)
        if mine is not None:
            if kernel in manager._kernel_buffers:
                self.stop(manager, kernel)
            if mine["ports"] == manager.get_kernel(kernel).ports:
                manager._kernel_buffers[kernel] = mine
            else:
                drop(mine)
        return self.get(manager, kernel, page)

    def end(self, manager: Any, kernel: str) -> None:
        """Keep nothing of a kernel any more."""
        for kept in self.aside.pop(kernel, {}).values():
            drop(kept)
        self.stop(manager, kernel)


def drop(kept: Dict[str, Any]) -> None:
    """Close the channels of a page that does not come back."""
    for stream in kept["channels"].values():
        if not stream.closed():
            stream.on_recv(None)
            stream.close()


def keep(package: str) -> None:
    """Keep it in the server of that package, `jupyter_server` or `notebook`."""
    kernels = package + ".services.kernels."
    manager: Any = import_module(kernels + "kernelmanager").MappingKernelManager
    try:
        connection: Any = import_module(kernels + "connection.channels")
        connection, closing = connection.ZMQChannelsWebsocketConnection, "disconnect"
    except ImportError:  # older than jupyter_server 2
        connection, closing = import_module(kernels + "handlers").ZMQChannelsHandler, "on_close"
    if hasattr(manager, "keeps_for_each"):  # the configuration was read twice
        return
    manager.keeps_for_each = True
    close, buffers = getattr(connection, closing), Buffers(manager)

    def close_each(self: Any) -> None:
        """Close a connection; one that was lost is for Jupyter the last one."""
        managed = getattr(self, "multi_kernel_manager", self.kernel_manager)
        counts, kernel = managed._kernel_connections, self.kernel_id
        lost = getattr(self, "websocket_handler", self).close_code is None
        works = self.channels and not any(stream.closed() for stream in self.channels.values())
        others = counts.get(kernel, 0) - 1 if lost and works else 0
        if others > 0:
            counts[kernel] = 1
        try:
            close(self)
        finally:
            if others > 0 and kernel in counts:
                counts[kernel] += others
        kept = managed._kernel_buffers.get(kernel)
        if kept is not None and kept["session_key"] == self.session_key:
            kept["lost"] = lost

    setattr(connection, closing, close_each)
    manager.start_buffering = lambda self, *args: buffers.begin(self, *args)
    manager.get_buffer = lambda self, *args: buffers.take_up(self, *args)
    manager.stop_buffering = lambda self, *args: buffers.end(self, *args)
