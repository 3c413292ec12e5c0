"""The Mandelbrot set as a PNG image, with the standard library alone.

The demo's notebook has this text in a cell and the image below it.
"""

import struct
import zlib


def steps(point: complex, most: int) -> int:
    """Return after how many squarings a point is known to leave for infinity, at most `most`."""
    value = 0j
    for step in range(most):
        if abs(value) > 2:
            return step
        value = value * value + point
    return most


def png(width: int, height: int, most: int = 24) -> bytes:
    """Return the image, its points in 256 greys that end dark inside the set."""
    scale = 3 / width
    rows = (
        bytes(
            255 - 255 * steps(complex(x * scale - 2.1, (y - height / 2) * scale), most) // most
            for x in range(width)
        )
        for y in range(height)
    )
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
