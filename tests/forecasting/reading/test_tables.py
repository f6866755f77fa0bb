from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from forecasting.reading.tables import CsvRow, UnreadableFile, rows

NEEDED = ("time", "value")


def written(directory: Path, content: bytes) -> str:
    file = directory / "some.csv"
    file.write_bytes(content)
    return str(file)


def a_row(**cells: str) -> CsvRow:
    return CsvRow("some.csv", 7, cells)


def test_rows_have_their_cells_by_name_and_their_line(tmp_path: Path) -> None:
    file = written(tmp_path, b'value,note,time\r\n5,"a,\nb",1\r\n\r\n6,,2\r\n')
    read = list(rows(file, NEEDED))
    assert [(row.line, row.number("time"), row.number("value")) for row in read] == [
        (3, 1.0, 5.0),
        (5, 2.0, 6.0),
    ]
    assert read[0].text("note") == "a,\nb"


def test_a_file_may_be_packed_and_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    plain = b"\xef\xbb\xbftime,value\n1,2\n"
    assert list(rows(written(tmp_path, gzip.compress(plain)), NEEDED)) == list(
        rows(written(tmp_path, plain), NEEDED)
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "some.csv: expected a line that names the columns time, value, got nothing"),
        (b"\n\n", "some.csv: expected a line that names the columns time, value, got nothing"),
        (b"time,value\n", "some.csv: expected rows below the header, got none"),
        (b"time,val\n1,2\n", "some.csv, line 1: expected a column value, got 'time', 'val'"),
        (b"time,time,value\n1,2,3\n", "some.csv, line 1: the column 'time' occurs 2 times"),
        (b"time,value,note,note\n1,2,3,4\n", "some.csv, line 1: the column 'note' occurs 2 times"),
        (b"time,value,, \n1,2,3,4\n", "some.csv, line 1: the column without a name occurs 2 times"),
        (b"time,value\n1,2\n3\n", "some.csv, line 3: expected 2 cells as in the header, got 1"),
        (b'time,value\n1,"2\n', "some.csv, line 2: expected CSV: unexpected end of data"),
        (b"time,value\n1,\xff\n", "some.csv, line 2: expected text in UTF-8, got other bytes"),
        (b"time,value\n1,\0\n", "some.csv, line 2: expected text, got binary data"),
        (b"\0" * 2_000_000, "some.csv, line 1: longer than 1048576 characters"),
        (b"\x1f\x8bwhatever", "some.csv, line 1: cannot read it: "),
        (gzip.compress(b"time,value\n1,2\n" * 99, mtime=0)[:-9], ": cannot read it: Compressed file ended"),
    ],
)
def test_an_invalid_table_is_refused_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(UnreadableFile) as refused:
        list(rows(written(tmp_path, content), NEEDED))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "message"), [("", "Is a directory"), ("none.csv", "No such file"), ("\0", "embedded null byte")]
)
def test_the_error_for_a_file_that_cannot_be_opened_has_the_reason(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(UnreadableFile, match=message):
        list(rows(f"{tmp_path}/{name}", NEEDED))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, b"time,value\n1,2\n")
    Path(file).chmod(0)
    with pytest.raises(UnreadableFile, match="Permission denied"):
        list(rows(file, NEEDED))


@pytest.mark.parametrize("text", ["", "nan", "inf", "-inf", "1e301", "x", "1,5", "0x10"])
def test_an_unusable_number_is_refused_with_file_line_and_column(text: str) -> None:
    with pytest.raises(UnreadableFile, match=r"^some.csv, line 7, value: expected a .*number") as refused:
        a_row(value=text).number("value")
    assert str(refused.value).endswith(f"got {text!r}")


def test_the_shown_content_is_cut_to_one_line() -> None:
    with pytest.raises(UnreadableFile) as refused:
        a_row(value="9" * 100_000 + "x").number("value")
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    "text",
    ["1767268800", " 1767268800.0", "2026-01-01T12:00:00Z", "2026-01-01T13:00:00+01:00", "2026-01-01 12:00"],
)
def test_a_time_is_seconds_or_a_date_of_which_utc_is_meant_where_no_zone_is_named(text: str) -> None:
    assert a_row(time=text).time_seconds("time") == 1767268800.0


@pytest.mark.parametrize("text", ["", "nan", "inf", "noon", "2026-13-01"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(UnreadableFile, match=r"line 7, time: expected a .*time"):
        a_row(time=text).time_seconds("time")


def test_a_name_must_not_be_empty() -> None:
    with pytest.raises(UnreadableFile, match="line 7, series: expected a text, got ''"):
        a_row(series="  ").text("series")
