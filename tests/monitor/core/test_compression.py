"""Compressed reports are small and unpack to the same bytes."""

from __future__ import annotations

import hashlib
import random
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.compression import ZSTD_1, pack, unpack
from reporters import report as wire
from reporters.report import MAX_BYTES
from tests.conftest import NOON
from tests.monitor.builders import gather_report


@given(st.binary(max_size=2000))
def test_packed_bytes_unpack_unchanged(body: bytes) -> None:
    assert unpack(*pack(body)) == body


@pytest.mark.parametrize("size", [0, 1, MAX_BYTES])
def test_the_smallest_and_the_largest_report_unpack_unchanged(size: int) -> None:
    body = random.Random(1).randbytes(size // 2) + b"x" * (size - size // 2)
    assert unpack(*pack(body)) == body


def test_the_dictionary_of_zstandard_reports_never_changes() -> None:
    """If this fails, restore the dictionary and add another compression format instead."""
    text = files("monitor.core").joinpath("dictionaries/report-1.txt").read_bytes()
    assert (
        hashlib.sha256(text).hexdigest() == "ca9aa828296ea0a4fb7136ff7566acfcdd22bfd2117f53e2972129d968b26377"
    )


def test_a_packed_gather_report_has_a_fifth_of_the_bytes_of_its_json() -> None:
    body = wire.to_json(gather_report(NOON, series="gather", numbers=random.Random(1)))
    assert len(pack(body)[1]) <= 0.2 * len(body)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown compression format 7"):
        unpack(7, b"")


@pytest.mark.parametrize("packed", [b"", b"no report", pack(b"a report")[1][:-3]])
def test_damaged_data_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="packed report"):
        unpack(ZSTD_1, packed)


@pytest.mark.parametrize("factor", [1, 100])
def test_data_that_unpack_to_more_than_a_report_may_have_are_refused(factor: int) -> None:
    with pytest.raises(ValueError, match=f"more than {MAX_BYTES} bytes"):
        unpack(*pack(b"0" * (MAX_BYTES + 1) * factor))
