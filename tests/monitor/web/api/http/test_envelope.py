"""Bodies are decompressed within bounds and split into reports, byte for byte."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zlib
from collections.abc import Callable, Mapping

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from monitor.web.api.http.envelope import (
    JSON,
    MAX_BYTES,
    MAX_REPORTS,
    NDJSON,
    EnvelopeError,
    MalformedBody,
    TooMuch,
    Unsupported,
    read,
    reports,
)

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "zstd": zstd.compress,
}
packings = pytest.mark.parametrize("packing", PACKED)


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the peak of the memory that *work* held, in addition to the memory held before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(body: bytes, media_type: str = JSON) -> None:
    with pytest.raises(EnvelopeError):
        reports(body, media_type)


@given(st.binary(max_size=300_000), st.sampled_from(sorted(PACKED)))
def test_a_compressed_body_is_restored(body: bytes, packing: str) -> None:
    assert read(io.BytesIO(PACKED[packing](body)), packing) == body


@packings
def test_as_many_bytes_as_are_taken_are_taken_and_not_one_more(packing: str) -> None:
    most = bytes(MAX_BYTES)
    assert len(read(io.BytesIO(PACKED[packing](most)), packing)) == MAX_BYTES
    with pytest.raises(TooMuch, match=f"at most {MAX_BYTES} bytes"):
        read(io.BytesIO(PACKED[packing](most + b"x")), packing)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_decompression_bomb_is_stopped(packing: str) -> None:
    bomb = PACKED[packing](bytes(16 * MAX_BYTES))

    def unpack() -> None:
        with pytest.raises(TooMuch):
            read(io.BytesIO(bomb), packing)

    assert peak_bytes(unpack) < 3 * MAX_BYTES


def test_what_would_take_a_large_window_to_unpack_is_refused() -> None:
    wide: Mapping[int, int] = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    compressor = zstd.ZstdCompressor(options=wide)
    packed = compressor.compress(bytes(100)) + compressor.flush()
    with pytest.raises(MalformedBody, match="memory"):
        read(io.BytesIO(packed), "zstd")


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_several_compressed_frames_are_one_body(packing: str) -> None:
    packed = PACKED[packing](b"[1,") + PACKED[packing](b"2]")
    assert read(io.BytesIO(packed), packing) == b"[1,2]"


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_as_many_empty_stretches_as_fit_are_not_all_looked_at(packing: str) -> None:
    with pytest.raises(TooMuch, match="frames"):
        read(io.BytesIO(PACKED[packing](b"") * (MAX_REPORTS + 2)), packing)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
@pytest.mark.parametrize(
    "spoil", [lambda whole: whole[:-3], lambda whole: b"", lambda whole: whole + b"more"]
)
def test_a_corrupt_body_is_malformed(packing: str, spoil: Callable[[bytes], bytes]) -> None:
    with pytest.raises(MalformedBody):
        read(io.BytesIO(spoil(PACKED[packing](b"some text"))), packing)


@pytest.mark.parametrize("packing", ["br", "deflate", "gzip, gzip", "x" * 1000])
def test_an_unknown_encoding_is_answered_with_the_supported_ones(packing: str) -> None:
    with pytest.raises(Unsupported, match="gzip, zstd, identity"):
        read(io.BytesIO(b"{}"), packing)


def test_each_report_of_an_array_keeps_its_bytes() -> None:
    odd = [b'{"b": 1,  "a":[1e5, "\\u00e9 ]},{"]}', b"{}", '{"ä":"ö"}'.encode()]
    body = b"\n [ " + b" ,\n".join(odd) + b"]\n"
    assert reports(body, JSON) == odd


def test_a_single_report_keeps_its_bytes_and_is_not_parsed() -> None:
    for body in (b' {"a": 1}\n', b"{", b"", b"null"):
        assert reports(body, JSON) == [body]


def test_each_non_empty_line_is_a_report() -> None:
    assert reports(b'{"a":1}\n\n{"b": 2}\r\n  \n{', NDJSON) == [b'{"a":1}', b'{"b": 2}\r', b"{"]
    assert reports(b"\n", NDJSON) == []


def test_the_limit_of_reports_is_exact() -> None:
    for together, media_type in ((lambda all: b"[" + b",".join(all) + b"]", JSON), (b"\n".join, NDJSON)):
        assert len(reports(together([b"{}"] * MAX_REPORTS), media_type)) == MAX_REPORTS
        with pytest.raises(TooMuch, match=f"at most {MAX_REPORTS} reports"):
            reports(together([b"{}"] * (MAX_REPORTS + 1)), media_type)


MANY = {
    "objects": b"[" + b"{}," * (MAX_BYTES // 3 - 1) + b"{}]",
    "numbers": b"[" + b"1," * (MAX_BYTES // 2 - 1) + b"1]",
    "brackets": b"[" * MAX_BYTES,
    "levels": b'[{"a":' * (MAX_BYTES // 6),
    "objects in an array": b"[[" + b"{}," * (MAX_BYTES // 3 - 2) + b"{}]]",
    "lines": b"\n" * MAX_BYTES,
}


@pytest.mark.parametrize("what", MANY)
def test_millions_of_items_take_at_most_two_copies_of_memory(what: str) -> None:
    media_type = NDJSON if what == "lines" else JSON
    assert peak_bytes(lambda: refused(MANY[what], media_type)) < 2 * MAX_BYTES


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[{}", r"reports\[0\]: expected a comma"),
        (b"[{} {}]", r"reports\[0\]: expected a comma .* \(byte 3\)"),
        (b"[{}] x", r"data after the array \(byte 5\)"),
        (b'[{}, {"a": }]', r"reports\[1\]: not JSON"),
        (b"[{},]", r"reports\[1\]: not JSON"),
        (b'[{"a":' + b"[" * 100_000, r"reports\[0\]: nested too deep"),
        (b'[{"a":"' + b"x" * 300_000 + b'", NaN}]', r"reports\[0\]: .* more than 262144 bytes"),
    ],
    ids=range(7),
)
def test_a_malformed_array_names_the_position(body: bytes, message: str) -> None:
    with pytest.raises(MalformedBody, match=message):
        reports(body, JSON)


@pytest.mark.parametrize(
    "odd",
    [
        b"1",
        b"null",
        b"[[]]",
        b'{"a": NaN}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": "\0"}',
        b"9" * 9000,
    ],
    ids=range(8),
)
def test_an_unreadable_item_does_not_affect_the_others(odd: bytes) -> None:
    body = b'[ {"a": "\xc3\xa4"}, ' + odd + b' ,{"b": [1, 2]}\n] '
    assert reports(body, JSON) == [b'{"a": "\xc3\xa4"}', odd, b'{"b": [1, 2]}']


def test_an_empty_array_has_no_report() -> None:
    assert reports(b" [ ] ", JSON) == []


@pytest.mark.parametrize("media_type", ["text/plain", "multipart/form-data", "application/xml"])
def test_an_unknown_type_is_answered_with_the_supported_ones(media_type: str) -> None:
    with pytest.raises(Unsupported, match="application/x-ndjson"):
        reports(b"{}", media_type)


def test_a_gzip_header_alone_is_malformed() -> None:
    packed = zlib.compressobj(wbits=31).compress(b"")
    with pytest.raises(MalformedBody, match="end too early"):
        read(io.BytesIO(packed), "gzip")
