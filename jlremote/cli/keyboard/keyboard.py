"""The keyboard of this system's terminal: `Keyboard`, `without_echo` and the name `TERMINAL`."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from jlremote.cli.keyboard.windows_keyboard import TERMINAL, without_echo
    from jlremote.cli.keyboard.windows_keyboard import WindowsKeyboard as Keyboard
else:
    from jlremote.cli.keyboard.posix_keyboard import TERMINAL, without_echo
    from jlremote.cli.keyboard.posix_keyboard import PosixKeyboard as Keyboard

__all__ = ["TERMINAL", "Keyboard", "without_echo"]
