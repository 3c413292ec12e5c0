"""Limit the rate of what a page is sent, and of what no other program is.

Jupyter leaves out what a kernel prints above 1 MB or 1,000 messages a second, as a browser could
crash. The programs of `jlr kernels` and `jlr lab` get all, as from a kernel of their own machine,
up to what waits for one that reads slowly. Browsers say where their page is from, others do not.

It is for each server since Notebook 6, on Python 3.6 and newer.
"""

from importlib import import_module
from typing import Any

MOST_BYTES = 64 << 20  # that may wait in memory


def is_limited(handler: Any) -> bool:
    """Return whether a limit counts for a WebSocket."""
    if "Origin" in handler.request.headers:
        return True
    stream = getattr(handler.ws_connection, "stream", None)
    return len(getattr(stream, "_write_buffer", None) or "") > MOST_BYTES


def limit_pages(package: str) -> None:
    """Do so in the server of that package, `jupyter_server` or `notebook`."""
    kernels = package + ".services.kernels."
    try:
        channels: Any = import_module(kernels + "connection.channels")
    except ImportError:  # older than jupyter_server 2
        handler: Any = import_module(kernels + "handlers").ZMQChannelsHandler
        for name in ("iopub_msg_rate_limit", "iopub_data_rate_limit"):
            setattr(handler, name, property(where_limited(getattr(handler, name).fget)))
        return
    connection = channels.ZMQChannelsWebsocketConnection
    limits = connection._limit_rate

    def limit_page(self: Any, *message: Any) -> Any:
        return is_limited(self.websocket_handler) and limits(self, *message)

    connection._limit_rate = limit_page


def where_limited(limit: Any) -> Any:
    """Return a limit that is 0, which is none, where it does not count."""
    return lambda handler: limit(handler) if is_limited(handler) else 0
