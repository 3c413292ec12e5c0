"""The keyboard of this system's terminal: `Keyboard`, `without_echo` and the name `TERMINAL`."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from jlremote.cli.keyboard.windows_keyboard import TERMINAL, WindowsKeyboard, without_echo

    Keyboard = WindowsKeyboard
else:
    from jlremote.cli.keyboard.posix_keyboard import TERMINAL, PosixKeyboard, without_echo

    Keyboard = PosixKeyboard

__all__ = ["TERMINAL", "Keyboard", "without_echo"]
