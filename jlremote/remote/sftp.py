"""An SFTP server on stdin and stdout, for containers without OpenSSH's `sftp-server`.

It speaks version 3 of the protocol, draft-ietf-secsh-filexfer-02, with those of OpenSSH's
extensions that its `scp` and `sftp` use.
"""

import errno
import os
import stat
import struct
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Tuple

_OK, _EOF, _NO_SUCH_FILE, _DENIED, _FAILURE, _BAD_MESSAGE, _UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
_STATUS, _HANDLE, _DATA, _NAME, _ATTRS, _EXTENDED_REPLY = 101, 102, 103, 104, 105, 201
_VERSION = 2
_SIZE, _OWNER, _MODE, _TIMES = 1, 2, 4, 8
_FLAGS = {0x02: os.O_WRONLY, 0x04: os.O_APPEND, 0x08: os.O_CREAT, 0x10: os.O_TRUNC, 0x20: os.O_EXCL}
_READ, _WRITE = 0x01, 0x02
_MOST_DATA = 256 << 10  # of one READ
_MOST_PACKET = 1 << 20
_MOST_NAMES = 100


class _Refused(Exception):
    """A request that is answered with a status."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status


class _Request:
    """The fields of a request, taken one after the other."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 0

    def take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.body):
            raise _Refused(_BAD_MESSAGE)
        return self.body[self.at - size : self.at]

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self) -> bytes:
        return self.take(self.number())

    def path(self) -> bytes:
        return self.text() or b"."

    def attributes(self) -> Dict[int, Tuple[int, ...]]:
        flags = self.number()
        sizes = {_SIZE: (8,), _OWNER: (4, 4), _MODE: (4,), _TIMES: (4, 4)}  # in their order
        # What else follows, of a kind of its own, is not read.
        return {
            kind: tuple(map(self.number, numbers))
            for kind, numbers in sizes.items()
            if flags & kind
        }

    def mode(self, default: int) -> int:
        """Take attributes, and return the permissions of something new."""
        return self.attributes().get(_MODE, (default,))[0] & 0o7777


def _text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _attributes(facts: os.stat_result) -> bytes:
    return struct.pack(
        ">IQIIIII",
        _SIZE | _OWNER | _MODE | _TIMES,
        facts.st_size,
        facts.st_uid,
        facts.st_gid,
        facts.st_mode,
        max(0, int(facts.st_atime)) & 0xFFFFFFFF,
        max(0, int(facts.st_mtime)) & 0xFFFFFFFF,
    )


def _name(name: bytes, facts: Any = None) -> bytes:
    if facts is None:
        return _text(name) + _text(name) + struct.pack(">I", 0)
    when = time.strftime("%b %e %H:%M", time.localtime(facts.st_mtime))
    line = "{} {:3d} {:8d} {:8d} {:8d} {} ".format(
        *(stat.filemode(facts.st_mode), facts.st_nlink, facts.st_uid, facts.st_gid),
        *(facts.st_size, when),
    )
    return _text(name) + _text(line.encode() + name) + _attributes(facts)


_Answer = Tuple[int, bytes]


class _SftpServer:
    """The open files, and one method for each request; each returns the answer's kind and body."""

    def __init__(self) -> None:
        self.handles: Dict[bytes, Any] = {}  # an open file's number, or a folder and names of it
        self.last = 0
        self.requests: Dict[int, Callable[[_Request], _Answer]] = {
            3: self.open,
            4: self.close,
            5: self.read,
            6: self.write,
            7: lambda r: (_ATTRS, _attributes(os.lstat(r.path()))),
            8: lambda r: (_ATTRS, _attributes(os.fstat(self.file(r)))),
            9: lambda r: self.set_attributes(r.path(), r.attributes()),
            10: lambda r: self.set_attributes(self.file(r), r.attributes()),
            11: self.open_folder,
            12: self.read_folder,
            13: lambda r: self.done(os.remove, r.path()),
            14: lambda r: self.done(os.mkdir, r.path(), r.mode(0o777)),
            15: lambda r: self.done(os.rmdir, r.path()),
            16: lambda r: self.names(_name(os.path.realpath(r.path()))),
            17: lambda r: (_ATTRS, _attributes(os.stat(r.path()))),
            18: self.rename,
            19: lambda r: self.names(_name(os.readlink(r.path()))),
            20: lambda r: self.done(os.symlink, r.text(), r.path()),
            200: lambda r: self.extensions.get(r.text(), self.unknown)(r),
        }
        self.extensions: Dict[bytes, Callable[[_Request], _Answer]] = {
            b"posix-rename@openssh.com": lambda r: self.done(os.replace, r.path(), r.path()),
            b"hardlink@openssh.com": lambda r: self.done(os.link, r.path(), r.path()),
            b"fsync@openssh.com": lambda r: self.done(os.fsync, self.file(r)),
            b"statvfs@openssh.com": lambda r: self.space(os.statvfs(r.path())),
            b"fstatvfs@openssh.com": lambda r: self.space(os.fstatvfs(self.file(r))),
            b"limits@openssh.com": self.limits,
            b"expand-path@openssh.com": self.expand,
        }

    def answer(self, kind: int, body: bytes) -> bytes:
        """Return the packet that answers a request."""
        if kind == 1:
            versions = {name: b"2" if b"statvfs" in name else b"1" for name in self.extensions}
            words = b"".join(_text(name) + _text(own) for name, own in versions.items())
            return _text(struct.pack(">BI", _VERSION, 3) + words)
        request = _Request(body)
        number = request.number()
        try:
            reply, data = self.requests.get(kind, self.unknown)(request)
        except _Refused as refused:
            reply, data = self.status(refused.status, str(refused))
        except OSError as failure:
            codes = {errno.ENOENT: _NO_SUCH_FILE, errno.EACCES: _DENIED, errno.EPERM: _DENIED}
            code = codes.get(failure.errno or 0, _FAILURE)
            reply, data = self.status(code, failure.strerror or "failure")
        except (ValueError, OverflowError) as wrong:
            reply, data = self.status(_FAILURE, str(wrong))
        return struct.pack(">IBI", 5 + len(data), reply, number) + data

    def status(self, code: int, message: str = "") -> _Answer:
        words = _text(message.encode("utf-8", "replace")) + _text(b"")
        return _STATUS, struct.pack(">I", code) + words

    def done(self, act: Callable[..., None] = lambda: None, *words: Any) -> _Answer:
        act(*words)
        return self.status(_OK)

    def names(self, *names: bytes) -> _Answer:
        return _NAME, struct.pack(">I", len(names)) + b"".join(names)

    def keep(self, opened: Any) -> _Answer:
        self.last += 1
        handle = b"%d" % self.last
        self.handles[handle] = opened
        return _HANDLE, _text(handle)

    def opened(self, kind: Any, opened: Any) -> Any:
        if not isinstance(opened, kind):
            raise _Refused(_FAILURE, "no such handle")
        return opened

    def file(self, request: _Request) -> int:
        return int(self.opened(int, self.handles.get(request.text())))

    def open(self, request: _Request) -> _Answer:
        path, access, mode = request.path(), request.number(), request.mode(0o666)
        flags = sum(value for bit, value in _FLAGS.items() if access & bit)
        if access & _READ and access & _WRITE:
            flags = flags & ~os.O_WRONLY | os.O_RDWR
        # A FIFO would wait for its other end.
        return self.keep(os.open(path, flags | getattr(os, "O_NONBLOCK", 0), mode))

    def close(self, request: _Request) -> _Answer:
        opened = self.opened((int, tuple), self.handles.pop(request.text(), None))
        return self.done(os.close, opened) if isinstance(opened, int) else self.done()

    def read(self, request: _Request) -> _Answer:
        file, offset, size = self.file(request), request.number(8), request.number()
        data = os.pread(file, min(size, _MOST_DATA), offset)
        if not data and size:
            raise _Refused(_EOF, "end of file")
        return _DATA, _text(data)

    def write(self, request: _Request) -> _Answer:
        file, offset, left = self.file(request), request.number(8), memoryview(request.text())
        while left:
            written = os.pwrite(file, left, offset)
            left, offset = left[written:], offset + written
        return self.done()

    def set_attributes(self, of: Any, attributes: Dict[int, Tuple[int, ...]]) -> _Answer:
        if _SIZE in attributes:
            os.truncate(of, attributes[_SIZE][0])
        if _MODE in attributes:
            os.chmod(of, attributes[_MODE][0] & 0o7777)
        if _TIMES in attributes:
            accessed, modified = attributes[_TIMES]
            os.utime(of, (accessed, modified))
        if _OWNER in attributes:
            os.chown(of, *attributes[_OWNER])
        return self.done()

    def open_folder(self, request: _Request) -> _Answer:
        path = request.path()
        return self.keep((path, [b".", b"..", *os.listdir(path)]))

    def read_folder(self, request: _Request) -> _Answer:
        path, left = self.opened(tuple, self.handles.get(request.text()))
        if not left:
            raise _Refused(_EOF, "end of folder")
        now, left[:] = left[:_MOST_NAMES], left[_MOST_NAMES:]
        entries = []
        for name in now:
            with suppress(OSError):  # it has gone meanwhile
                entries.append(_name(name, os.lstat(os.path.join(path, name))))
        return self.names(*entries)

    def rename(self, request: _Request) -> _Answer:
        source, target = request.path(), request.path()
        if os.path.lexists(target):
            raise _Refused(_FAILURE, "it exists")
        return self.done(os.rename, source, target)

    def unknown(self, _request: _Request) -> _Answer:
        return self.status(_UNSUPPORTED, "not supported")

    def space(self, facts: Any) -> _Answer:
        flags = facts.f_flag & 3
        return _EXTENDED_REPLY, struct.pack(
            ">11Q",
            *(facts.f_bsize, facts.f_frsize, facts.f_blocks, facts.f_bfree, facts.f_bavail),
            *(facts.f_files, facts.f_ffree, facts.f_favail, 0, flags, facts.f_namemax),
        )

    def limits(self, _request: _Request) -> _Answer:
        return _EXTENDED_REPLY, struct.pack(">4Q", _MOST_PACKET, _MOST_DATA, _MOST_PACKET - 1024, 0)

    def expand(self, request: _Request) -> _Answer:
        return self.names(_name(os.path.realpath(os.path.expanduser(request.path()))))


def main(_argv: List[str]) -> None:
    """Answer requests until stdin ends."""
    server, source, sink = _SftpServer(), open(0, "rb"), open(1, "wb")  # noqa: SIM115
    while True:
        head = source.read(5)
        if len(head) < 5:
            return
        size, kind = struct.unpack(">IB", head)
        if not 1 <= size <= _MOST_PACKET:
            return
        sink.write(server.answer(kind, source.read(size - 1)))
        sink.flush()
