"""Input: `prompts` asks questions, `local_terminal` is the local end of `jlr shell`.

`Keyboard`, functions and the name `TERMINAL` come from `posix_keyboard` or `windows_keyboard`.

Why are questions asked on `/dev/tty`? As with ssh, stdin and stdout may be pipes that belong to
the command. Without a terminal a question is an error with exit code 4.
"""

import sys

if sys.platform == "win32":
    from jlremote.cli.keyboard.windows_keyboard import TERMINAL, typed_line, without_echo
    from jlremote.cli.keyboard.windows_keyboard import WindowsKeyboard as Keyboard
else:
    from jlremote.cli.keyboard.posix_keyboard import TERMINAL, typed_line, without_echo
    from jlremote.cli.keyboard.posix_keyboard import PosixKeyboard as Keyboard

__all__ = ["TERMINAL", "Keyboard", "typed_line", "without_echo"]
