"""Open what is imported: a file, or standard input, compressed or not."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from monitor.importers.base import Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STDIN = "-"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BUFFER_BYTES = 1 << 16


@contextmanager
def opened(file: str, stdin: BinaryIO) -> Iterator[BinaryIO]:
    """The bytes in *file*, or in *stdin* for ``-``, unpacked; how they are packed is told by their beginning.

    Raises:
        OSError: it cannot be opened. While it is read, Unreadable: it is damaged, or ends where it should
        not.
    """
    with ExitStack() as stack:
        raw = stdin if file == STDIN else stack.enter_context(Path(file).open("rb"))
        stream = io.BufferedReader(cast("io.RawIOBase", raw), _BUFFER_BYTES)
        stack.callback(stream.detach)  # standard input stays open
        beginning = stream.peek(len(_ZSTD))
        if beginning.startswith(_GZIP):
            yield io.BufferedReader(
                _Unpacked(stack.enter_context(gzip.GzipFile(fileobj=stream))), _BUFFER_BYTES
            )
        elif beginning.startswith(_ZSTD):
            yield io.BufferedReader(_Unpacked(stack.enter_context(zstd.ZstdFile(stream))), _BUFFER_BYTES)
        else:
            yield stream


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
