"""The escape sequences of `jlr shell`, which are those of ssh."""

from __future__ import annotations


class Escapes:
    """A filter that takes `~.` and `~~` at the beginning of a line out of the typed keys.

    Attributes:
        hung_up: whether `~.` was typed.
    """

    def __init__(self) -> None:
        self.hung_up = False
        self._at_beginning = True
        self._tilde = False

    def without(self, typed: bytes) -> bytes:
        """Return the keys for the host; a tilde that may begin an escape waits for the next key."""
        out = bytearray()
        for number in typed:
            key = bytes((number,))
            if self._tilde:
                self._tilde = False
                if key == b".":
                    self.hung_up = True
                    return bytes(out)
                out += b"~" if key == b"~" else b"~" + key
            elif key == b"~" and self._at_beginning:
                self._tilde = True
                continue
            else:
                out += key
            self._at_beginning = key in (b"\r", b"\n")
        return bytes(out)
