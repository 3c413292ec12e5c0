"""The error boundary: a failure becomes a message, or with `--json` an object, and an exit code."""

from __future__ import annotations

import _thread
import errno
import os
import re
import signal
import sys
import threading
import time
from types import FrameType

import click

from jlremote.cli.command import usage_line
from jlremote.cli.program import DESTRUCTIVE, jlr
from jlremote.cli.screen.terminal import json_text, tell
from jlremote.errors import EXIT_INTERRUPTED, Bug, JlrError, Usage
from jlremote.text import closest, one_line, printable, reason_of, redacted

_FREED_SECONDS = 0.05  # by then an object is freed
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENAMETOOLONG)
# Options that destroy something, so a typo of another one must not lead to them.
_NEVER_OFFERED = {"--clean", "--container", "--force", "--forget", "--remove", "--rm", "--yes"}


def run() -> int:
    """Run `jlr` with the process's own arguments and return its exit code."""
    _fill_standard_streams()
    _end_cleanly_on_signals()
    try:
        if "_JLR_COMPLETE" in os.environ:
            from jlremote.cli.completion import shell_answers

            shell_answers.register()
        status = jlr.main(prog_name="jlr", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except (KeyboardInterrupt, click.Abort) as interruption:  # click puts its own in between
        words = str(interruption.__cause__ or interruption)
        if _as_json():
            words = json_text(
                {"error": words or "interrupted", "hint": None, "exit": EXIT_INTERRUPTED}
            )
        if words:
            tell(words)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # what is still to be written goes nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        return 1
    except click.exceptions.NoArgsIsHelpError as request:
        request.show()
        return request.exit_code
    except click.ClickException as failure:
        return explain(_in_our_words(failure))
    except Exception as failure:  # noqa: BLE001 - this is the boundary
        return explain(failure)


def explain(failure: Exception) -> int:
    """Print the message and the hint of a failure, and return its exit code."""
    if isinstance(failure, OSError) and failure.errno in _OF_DISK:
        what = f"`{failure.filename}`" if failure.filename else "the output"
        failure = JlrError(f"cannot write {what}: {reason_of(failure)}")
    if isinstance(failure, JlrError) and not isinstance(failure, Bug):
        message, hint, code = failure.message, failure.hint, failure.exit_code
    else:
        message, hint = _log_bug(failure)
        code = Bug.exit_code
    if _as_json():
        tell(json_text({"error": message, "hint": hint, "exit": code}))
        return code
    tell(f"{click.style('error', fg='red', bold=True)}: {printable(message)}")
    if isinstance(failure, Usage) and failure.usage:
        tell(f"{click.style('usage', bold=True)}: {printable(failure.usage)}")
    if hint:
        tell(f"{click.style('hint', fg='cyan', bold=True)}: {printable(hint)}")
    return code


def _log_bug(failure: Exception) -> tuple[str, str]:
    """Write a log without arguments and variables, which may be secret; return message and hint."""
    import platform
    import traceback

    from jlremote import __version__
    from jlremote.laptop import paths

    cause = redacted(one_line(f"{type(failure).__name__}: {failure}"))
    summary = f"jlr failed unexpectedly ({cause})"
    lines = [
        f"jlr {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {next((word for word in sys.argv[1:] if word.isalpha()), 'none')}",
        "",
        *traceback.format_exception(failure),
    ]
    report = redacted(printable("\n".join(line.rstrip("\n") for line in lines))) + "\n"
    try:
        path = paths.log_directory() / f"bug-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        paths.write_whole(path, report)
    except JlrError as trouble:
        return summary, f"this is a bug in jlr; its log cannot be written: {trouble.message}"
    return summary, f"this is a bug in jlr; the details are in `{path}`"


def _as_json() -> bool:
    typed = sys.argv[1:]
    ours = typed[: typed.index("--") if "--" in typed else None]
    return "--json" in ours or "--json-lines" in ours


def _in_our_words(failure: click.ClickException) -> JlrError:
    has_option = getattr(failure, "option_name", None) is not None
    message = failure.message if has_option else failure.format_message()
    message = re.sub(r"'([^']*)'", r"`\1`", " ".join(message.split())).rstrip(".")
    message = re.sub(r": (?:File|Directory) `", ": `", message)
    context = getattr(failure, "ctx", None)
    if context and isinstance(failure, click.MissingParameter):
        message = re.sub(r"argument |`|(?<=:) Choose from:", "", message.replace(". ", ": "))
    path = context.command_path if context else "jlr"
    hint = f"`{path} -h` shows the options and examples"
    unknown = failure.option_name if isinstance(failure, click.NoSuchOption) else None
    takes_command = getattr(context and context.command, "takes_command", False)
    if takes_command and (unknown or "extra argument" in message):
        hint = f"put the command after `--`: `{path} … -- COMMAND`"
    if unknown and context:
        hint = _resembling(unknown, context.command) or hint
    wrong = Usage(message[:1].lower() + message[1:], hint=hint)
    wrong.usage = usage_line(context) if context else ""
    return wrong


def _resembling(typed: str, command: click.Command) -> str | None:
    never = _NEVER_OFFERED | ({"--all"} if command.name in DESTRUCTIVE else set())
    if typed == "-v":
        return "did you mean `--verbose`?"
    if not typed.startswith("--"):  # a letter is like no word
        return None
    names = (name for option in command.params for name in (*option.opts, *option.secondary_opts))
    known = [name[2:] for name in names if name.startswith("--") and name not in never]
    near = closest(typed.lstrip("-"), known)
    return f"did you mean `--{near}`?" if near else None


def _fill_standard_streams() -> None:
    """Open the null device for a closed stream, as of `>&-`: else the next file gets its number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _end_cleanly_on_signals() -> None:
    numbers = [signal.SIGTERM]
    if sys.platform == "win32":
        from jlremote.laptop import windows

        windows.on_close(lambda: signal.raise_signal(signal.SIGTERM))
        # A program in the current folder, which may be anyone's, must not be run as `ssh`.
        os.environ[windows.NOT_FROM_HERE] = "1"
    else:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` wants SIGHUP ignored
            signal.signal(number, _leave)
    sys.unraisablehook = _signal_again


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


# Python drops every exception that is raised while an object is freed, also that of a signal.
def _signal_again(lost: sys.UnraisableHookArgs) -> None:
    code = lost.exc_value.code if isinstance(lost.exc_value, SystemExit) else None
    if isinstance(lost.exc_value, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    if isinstance(code, int) and code - 128 in signal.valid_signals():
        # Not by `threading`: the object may be a thread, at whose end that holds its lock.
        _thread.start_new_thread(_signal_main, (signal.Signals(code - 128),))
    else:
        sys.__unraisablehook__(lost)


def _signal_main(number: signal.Signals) -> None:
    time.sleep(_FREED_SECONDS)  # one that comes too early is lost and repeated, too
    if sys.platform == "win32":
        _thread.interrupt_main(number)
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, number)
