from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from forecasting.__main__ import main


def log(directory: Path, jobs: int = 200) -> str:
    """Return the lines of jobs of queue 3, and of ten jobs of another; one in ten waits an hour."""
    draw, file = random.Random(6), directory / "log.swf.gz"
    lines = ["; UnixStartTime: 0"]
    for number in range(jobs):
        wait = 3600 if draw.random() < 0.1 else draw.randrange(60)
        queue = 3 if number >= 10 else 1
        lines.append(f"{number} {60 * number} {wait} 30 4 -1 -1 4 60 -1 1 7 -1 -1 {queue} -1 -1 -1")
    lines.append("999 5 -1 -1 4 -1 -1 4 60 -1 5 7 -1 -1 3 -1 -1 -1")
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    return str(file)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["queue-bounds", *arguments]) == 0
    document = capsys.readouterr()
    assert document.err == ""
    return document.out


def test_the_table_has_a_line_for_each_queue_and_the_plain_quantile_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, _, headings, large, small = printed(capsys, log(tmp_path)).splitlines()
    assert "200 jobs, 1 lines left out; quantile 0.95, confidence 0.95" in first
    assert headings.split()[:3] == ["queue", "jobs", "bounded"]
    assert len({len(line) for line in (headings, large, small)}) == 1
    assert large.split()[:2] == ["3", "190"]
    assert small.split() == ["1", "10", "0", *["-"] * 6]


def test_the_columns_of_a_queue_with_a_long_name_stand_below_their_headings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, name = tmp_path / "some.swf", "normal-and-longer-than-others"
    lines = (f"{number} {number} 5 30 4 -1 -1 4 60 -1 1 7 -1 -1 {name} -1 -1 -1" for number in range(70))
    file.write_text("\n".join(lines), encoding="ascii")
    *_, headings, row = printed(capsys, str(file)).splitlines()
    assert row.startswith(f"{name} ")
    assert len(headings) == len(row)


def test_the_document_has_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(
        printed(capsys, log(tmp_path), "--json", "--quantile", ".8", "--confidence", ".9", "--window", "50")
    )
    assert {name: document[name] for name in document if name != "queues"} == {
        "quantile": 0.8,
        "confidence": 0.9,
        "least_history": 11,
        "plain_window": 50,
        "jobs": 200,
        "left_out": 1,
    }
    large, small = document["queues"]
    assert (large["queue"], large["jobs"], small["queue"], small["jobs"]) == ("3", 190, "1", 10)
    assert 150 < large["bounded"] <= 190 - 11
    for figures in (large["bound"], large["plain"]):
        assert 0.7 < figures["coverage"] <= 1.0
        assert figures["pinball_seconds"] > 0.0
        assert figures["median_seconds"] > 0.0
    assert small["bound"] == {"coverage": None, "pinball_seconds": None, "median_seconds": None}


@pytest.mark.parametrize(
    ("option", "value"),
    [("--quantile", "1"), ("--quantile", "95%"), ("--confidence", "nan"), ("--window", "0")],
)
def test_an_invalid_option_is_refused(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["queue-bounds", log(tmp_path), option, value])
    assert ended.value.code == 2
    assert option in capsys.readouterr().err


def test_a_file_that_is_no_log_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.csv"
    file.write_text("time,value\n1,2\n", encoding="utf-8")
    assert main(["queue-bounds", str(file)]) == 2
    document = f"{file}, line 1, fields: expected 18, got '1: time,value'"
    assert capsys.readouterr().err == f"python -m forecasting queue-bounds: {document}\n"
