"""Packs and unpacks tar archives on the Python of a place without `tar`."""

import os
import sys
import tarfile
from typing import Any, Iterator, List


class _Packing(tarfile.TarFile):
    """An archive that reports sockets, which it leaves out, and a file that changes."""

    changed = ""

    def gettarinfo(self, name: Any = None, arcname: Any = None, fileobj: Any = None) -> Any:
        found = super().gettarinfo(name, arcname, fileobj)
        if found is None:
            os.write(2, os.fsencode(str(name) + ": socket ignored\n"))
        return found

    def addfile(self, tarinfo: tarfile.TarInfo, fileobj: Any = None) -> None:
        super().addfile(tarinfo, fileobj)
        if fileobj is not None and os.fstat(fileobj.fileno()).st_size != tarinfo.size:
            self.changed = tarinfo.name


def _pack(path: str, follow: bool) -> None:
    with _Packing.open(
        fileobj=open(1, "wb"), mode="w|", format=tarfile.GNU_FORMAT, dereference=follow
    ) as archive:
        archive.add(path)
    if archive.changed:
        sys.exit(archive.changed + ": file changed as it was read")


def _unpack(keep_modes: bool) -> None:
    umask = os.umask(0o77)
    os.umask(umask)

    def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        for member in archive:
            member.mode &= 0o777 if keep_modes else ~umask
            yield member

    with tarfile.open(fileobj=open(0, "rb"), mode="r|") as archive:
        if hasattr(tarfile, "fully_trusted_filter"):  # the laptop's words are what is unpacked
            archive.extraction_filter = tarfile.fully_trusted_filter
        archive.extractall(members=members(archive))  # noqa: S202


def main(argv: List[str]) -> None:
    """Run `c|ch|x|xp [PATH]`, with `h` following a link and `p` keeping modes."""
    try:
        if argv[0].startswith("c"):
            _pack(argv[1], "h" in argv[0])
        else:
            _unpack("p" in argv[0])
    except (OSError, tarfile.TarError) as failure:
        sys.exit(str(failure))
