"""Raw reports are kept small, and come back byte for byte."""

from __future__ import annotations

import gzip
import hashlib
import random
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.compression import GZIP, ZSTD_1, pack, unpack
from reporters import report as wire
from reporters.report import MAX_BYTES
from tests.conftest import NOON
from tests.monitor.builders import circle_report, gather_report


@given(st.binary(max_size=2000))
def test_whatever_is_packed_comes_back_byte_for_byte(body: bytes) -> None:
    assert unpack(*pack(body)) == body


@pytest.mark.parametrize("size", [0, 1, MAX_BYTES])
def test_the_smallest_and_the_largest_report_come_back(size: int) -> None:
    body = random.Random(1).randbytes(size // 2) + b"x" * (size - size // 2)
    assert unpack(*pack(body)) == body


def test_what_was_packed_by_gzip_is_read_for_ever() -> None:
    body = wire.to_json(circle_report(NOON))
    assert unpack(GZIP, gzip.compress(body)) == body


def test_what_was_packed_by_zstandard_is_read_for_ever() -> None:
    """If this fails, the dictionary has been changed: let it be as it was, and make another packing."""
    text = files("monitor.depot").joinpath("dictionaries/report-1.txt").read_bytes()
    assert (
        hashlib.sha256(text).hexdigest() == "ca9aa828296ea0a4fb7136ff7566acfcdd22bfd2117f53e2972129d968b26377"
    )


def test_a_report_of_a_gather_takes_a_fifth_of_its_json() -> None:
    body = wire.to_json(gather_report(NOON, series="gather", numbers=random.Random(1)))
    assert len(pack(body)[1]) <= 0.2 * len(body)


def test_a_packing_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="packed by way 7"):
        unpack(7, b"")


@pytest.mark.parametrize("packing", [GZIP, ZSTD_1])
def test_what_is_no_packed_report_is_refused(packing: int) -> None:
    for packed in (b"", b"no report", pack(b"a report")[1][:-3], gzip.compress(b"a report")[:-3]):
        with pytest.raises(ValueError, match="packed report"):
            unpack(packing, packed)


def test_what_would_unpack_to_more_than_a_report_may_have_is_refused() -> None:
    bomb = b"0" * (MAX_BYTES + 1)
    for packing, packed in (pack(bomb), (GZIP, gzip.compress(bomb * 100))):
        with pytest.raises(ValueError, match=f"more than {MAX_BYTES} bytes"):
            unpack(packing, packed)
