"""Open what is imported: a file, or standard input, compressed or not."""

from __future__ import annotations

import errno
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from monitor.imports.formats.base import Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    Buffered = io.BufferedReader[io.RawIOBase]

STDIN = "-"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"BZh": "packed by bzip2",
    b"\xfd7zXZ\x00": "packed by xz",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
}
_TAR, _TAR_AT = b"ustar", 257
_BUFFER_BYTES = 1 << 16


@contextmanager
def opened(file: str, stdin: BinaryIO | None) -> Iterator[BinaryIO]:
    """The bytes in *file*, or in *stdin* for ``-``, unpacked; how they are packed is told by their beginning.

    Raises:
        OSError: it cannot be opened. Unreadable: it is packed in a way that is not known here; while it is
            read, it is damaged, or ends where it should not.
    """
    with ExitStack() as stack:
        raw = _stdin(stdin) if file == STDIN else stack.enter_context(Path(file).open("rb"))
        packed = io.BufferedReader(cast("io.RawIOBase", raw), _BUFFER_BYTES)
        stack.callback(packed.detach)  # standard input stays open
        stream = _unpacked(packed, stack)
        _refuse_foreign(stream.peek(_TAR_AT + len(_TAR)))
        yield stream


def _stdin(stdin: BinaryIO | None) -> BinaryIO:
    if stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return stdin


def _unpacked(packed: Buffered, stack: ExitStack) -> Buffered:
    beginning = packed.peek(len(_ZSTD))
    if beginning.startswith(_GZIP):
        return io.BufferedReader(_Unpacked(stack.enter_context(gzip.GzipFile(fileobj=packed))), _BUFFER_BYTES)
    if beginning.startswith(_ZSTD):
        return io.BufferedReader(_Unpacked(stack.enter_context(zstd.ZstdFile(packed))), _BUFFER_BYTES)
    return packed


def _refuse_foreign(beginning: bytes) -> None:
    """Raise Unreadable for what has other files in it, which importers take for rubbish."""
    found = [what for mark, what in _FOREIGN.items() if beginning.startswith(mark)]
    if beginning[_TAR_AT:].startswith(_TAR):
        found = ["a tar archive"]
    if found:
        raise Unreadable(f"this is {found[0]}: unpack it first, or pipe a file of it to standard input")


class _Unpacked(io.RawIOBase):
    """What *packed* gives, with one error for all that can be wrong with it."""

    def __init__(self, packed: gzip.GzipFile | zstd.ZstdFile) -> None:
        self._packed = packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        try:
            data = self._packed.read(len(view))
        except (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
            raise Unreadable(f"what is packed is damaged or cut off: {error}") from None
        view[: len(data)] = data
        return len(data)
