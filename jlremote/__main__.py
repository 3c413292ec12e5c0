"""`jlr`, and `python -m jlremote`."""

from __future__ import annotations

import sys

from jlremote.errors import EXIT_INTERRUPTED


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from jlremote.cli.boundary import run
    except KeyboardInterrupt:  # to load what would answer it takes a tenth of a second
        return EXIT_INTERRUPTED
    return run()


if __name__ == "__main__":
    sys.exit(main())
