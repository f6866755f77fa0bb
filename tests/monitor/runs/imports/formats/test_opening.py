"""Input files: detection of compression, and errors of damaged ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from monitor.runs.imports import formats
from monitor.runs.imports.formats.base import Unreadable
from monitor.runs.imports.formats.opening import open_input

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"".join(b"%d 8.0\n" % (1141214400 + second) for second in range(20_000))
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "two gzips": lambda data: gzip.compress(data[:999]) + gzip.compress(data[999:]),
}


@pytest.mark.parametrize("how", PACKED)
def test_compression_is_detected_by_content(how: str, tmp_path: Path) -> None:
    file = tmp_path / "values.txt"
    file.write_bytes(PACKED[how](TEXT))
    with open_input(str(file), io.BytesIO()) as stream:
        assert stream.read() == TEXT


@pytest.mark.parametrize("how", PACKED)
def test_standard_input_is_read_like_a_file_and_stays_open(how: str) -> None:
    stdin = io.BytesIO(PACKED[how](TEXT))
    with open_input("-", stdin) as stream:
        assert stream.readline() == TEXT[: TEXT.index(b"\n") + 1]
    assert not stdin.closed


@pytest.mark.parametrize("how", ["gzip", "zstd", "two gzips"])
@pytest.mark.parametrize("cut", [6, -20])
def test_truncated_data_are_reported_at_their_end(how: str, cut: int) -> None:
    with (
        pytest.raises(Unreadable, match="the compressed data are damaged or truncated"),
        open_input("-", io.BytesIO(PACKED[how](TEXT)[:cut])) as stream,
    ):
        stream.read()


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_damaged_data_are_reported(how: str) -> None:
    packed = bytearray(PACKED[how](TEXT))
    packed[len(packed) // 2] ^= 0xFF
    with (
        pytest.raises(Unreadable, match="the compressed data are damaged or truncated"),
        open_input("-", io.BytesIO(packed)) as stream,
    ):
        stream.read()


def archive(write: Callable[[io.BytesIO], None]) -> bytes:
    packed = io.BytesIO()
    write(packed)
    return packed.getvalue()


def into_tar(packed: io.BytesIO) -> None:
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("values.txt"))


def into_zip(packed: io.BytesIO) -> None:
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("values.txt", TEXT)


@pytest.mark.parametrize(
    ("packed", "what"),
    [
        (bz2.compress(TEXT), "compressed by bzip2"),
        (lzma.compress(TEXT), "compressed by xz"),
        (archive(into_zip), "a zip archive"),
        (archive(into_tar), "a tar archive"),
        (gzip.compress(archive(into_tar)), "a tar archive"),
    ],
    ids=["bzip2", "xz", "zip", "tar", "compressed tar"],  # compressed data contain a time stamp
)
def test_archives_and_other_compression_are_refused_by_name(packed: bytes, what: str) -> None:
    with (
        pytest.raises(Unreadable, match=f"this is {what}: unpack it first"),
        open_input("-", io.BytesIO(packed)),
    ):
        pass


def test_a_closed_standard_input_is_an_os_error() -> None:
    with pytest.raises(OSError, match="standard input is closed"), open_input("-", None):
        pass


def test_empty_input_gives_no_bytes() -> None:
    with open_input("-", io.BytesIO()) as stream:
        assert stream.read() == b""


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_memory_does_not_grow_with_the_file(how: str) -> None:
    lines = [b"#" + b"%d" % number * 2000 + b"\n" for number in range(1000)]
    packed = io.BytesIO(PACKED[how](b"".join(lines)))
    tracemalloc.start()
    with open_input("-", packed) as stream:
        read = sum(1 for _ in formats.create_importer("nws", {}).read(stream))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == len(lines)
    assert most_bytes < sum(map(len, lines)) / 5
