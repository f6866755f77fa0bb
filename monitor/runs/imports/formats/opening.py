"""Open the input of an import: a file or standard input, compressed or not."""

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

from monitor.runs.imports.formats.base import Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    Buffered = io.BufferedReader[io.RawIOBase]

STDIN = "-"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UNSUPPORTED = {
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
}
_TAR, _TAR_AT = b"ustar", 257
_BUFFER_BYTES = 1 << 16


@contextmanager
def open_input(file: str, stdin: BinaryIO | None) -> Iterator[BinaryIO]:
    """Open *file*, or *stdin* for ``-``, for reading its decompressed bytes; detect gzip and zstd by content.

    Raises:
        OSError: the file cannot be opened.
        Unreadable: the file is an archive or compressed in another way. The stream raises the same error for
            damaged or truncated data.
    """
    with ExitStack() as stack:
        raw = _stdin(stdin) if file == STDIN else stack.enter_context(Path(file).open("rb"))
        compressed = io.BufferedReader(cast("io.RawIOBase", raw), _BUFFER_BYTES)
        stack.callback(compressed.detach)  # standard input stays open
        stream = _decompressed(compressed, stack)
        _refuse_unsupported(stream.peek(_TAR_AT + len(_TAR)))
        yield stream


def _stdin(stdin: BinaryIO | None) -> BinaryIO:
    if stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return stdin


def _decompressed(compressed: Buffered, stack: ExitStack) -> Buffered:
    beginning = compressed.peek(len(_ZSTD))
    if beginning.startswith(_GZIP):
        return io.BufferedReader(
            _Decompressed(stack.enter_context(gzip.GzipFile(fileobj=compressed))), _BUFFER_BYTES
        )
    if beginning.startswith(_ZSTD):
        frames = stack.enter_context(zstd.ZstdFile(compressed))
        return io.BufferedReader(_Decompressed(frames), _BUFFER_BYTES)
    return compressed


def _refuse_unsupported(beginning: bytes) -> None:
    """Raise Unreadable for archives and for compression that is not supported."""
    formats = [name for magic, name in _UNSUPPORTED.items() if beginning.startswith(magic)]
    if beginning[_TAR_AT:].startswith(_TAR):
        formats = ["a tar archive"]
    if formats:
        raise Unreadable(f"this is {formats[0]}: unpack it first, or pipe one of its files to standard input")


class _Decompressed(io.RawIOBase):
    """The decompressed bytes of *compressed*; an error of a decompressor is raised as Unreadable."""

    def __init__(self, compressed: gzip.GzipFile | zstd.ZstdFile) -> None:
        self._compressed = compressed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        try:
            data = self._compressed.read(len(view))
        except (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
            raise Unreadable(f"the compressed data are damaged or truncated: {error}") from None
        view[: len(data)] = data
        return len(data)
