"""Answer nothing outside the server's own path.

Jupyter's error pages and headers name its `base_url`, and who knows that can ask for the cookie
that is kept to it. All that the server has lies below.

It is for each server since Notebook 6, on Python 3.6 and newer.
"""

import re
from importlib import import_module
from typing import Any

from tornado.web import ErrorHandler


def say_nothing_outside(package: str) -> None:
    """Let the server of that package, `jupyter_server` or `notebook`, answer 404 there."""
    if package == "notebook":
        answer_outside(import_module("notebook.notebookapp").NotebookWebApplication)
    else:
        answer_outside(import_module("jupyter_server.serverapp").ServerWebApplication)


def answer_outside(application: Any) -> None:
    """Put a handler for all other paths before those of the application, once."""
    if "says_nothing_outside" in vars(application):  # the configuration was read twice
        return
    application.says_nothing_outside = True
    handlers = application.init_handlers

    def with_outside(self: Any, *arguments: Any) -> Any:
        outside = f"(?!{re.escape(arguments[-1]['base_url'])}).*"
        return [(outside, ErrorHandler, {"status_code": 404}), *handlers(self, *arguments)]

    application.init_handlers = with_outside
