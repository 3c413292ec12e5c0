"""Errors that name an option as it was set: by a flag, by a setting or by a variable."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from jlremote.errors import JlrError, Unreachable
from jlremote.laptop.settings.options import KINDS

if TYPE_CHECKING:
    from jlremote.laptop.settings.settings import Origin


# Errors name the values of these, and not the options.
_BY_VALUE = ("image", "volume")


@contextmanager
def named_as_set(
    host: str | None, options: Mapping[str, Any], only: Collection[str] = tuple(KINDS)
) -> Iterator[None]:
    """Let an error name an option as a setting where it came from the settings, not from a flag.

    `options` are the command's, by the names of click's parameters; `only` are the long names of
    those that it takes from the settings.
    """
    try:
        yield
    except JlrError as error:
        from jlremote.laptop.settings import settings

        flags = {name: options.get(name.replace("-", "_")) for name in KINDS}
        with suppress(JlrError):
            known = settings.load()
            for origin in known.origins(host, flags):
                if origin.option not in only or not origin.is_set:
                    continue
                error.message = _as_set(error.message, origin)
                error.hint = error.hint and _as_set(error.hint, origin)
                if _chose(origin, error) and " chooses it" not in error.message:
                    error.message += f"; {origin.within(known.path)} chooses it"
        raise


def _chose(origin: Origin, error: JlrError) -> bool:
    """Return whether an error is about the value of an option that it does not name."""
    value = str(origin.value)
    if origin.option == "volume":
        value = value.partition(":")[0]
    options = (*_BY_VALUE, "host") if isinstance(error, Unreachable) else _BY_VALUE
    return origin.option in (error.chosen_by, *options) and f"`{value}`" in error.message


def _as_set(text: str, origin: Origin) -> str:
    """Return an error's text with the place of an option that was set."""
    option, place = f"--{origin.option}", origin.place
    shown = f"`{place}`" if place.startswith("JLR_") else f"`{origin.option}` of `{place}`"
    text = text.replace(f"`{option}`", shown)
    return text.replace(f"`{option} {origin.value}`", f"`{option} {origin.value}` ({place})")
