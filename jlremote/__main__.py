"""`jlr`, and `python -m jlremote`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    from jlremote.cli.boundary import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
