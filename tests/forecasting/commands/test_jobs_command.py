from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from forecasting.__main__ import main
from forecasting.reading import histories

LOG = """; UnixStartTime: 1000
1 0 10 100 4 -1 -1 4 600 -1 1 7 2 3 1 -1 -1 -1
2 5 -1 100 4 -1 -1 4 600 -1 1 7 2 3 1 -1 -1 -1
3 5 5 50 4 -1 -1 4 600 -1 0 7 2 3 1 -1 -1 -1
4 20 0 30 4 -1 -1 -1 -1 -1 1 8 2 -1 1 -1 -1 -1
5 20 0 30 4 -1 -1 -1 -1 -1 1 8 2 -1 1 -1 -1 -1
"""


def log(directory: Path, text: str = LOG) -> str:
    file = directory / "machine-1.2.swf.gz"
    file.write_bytes(gzip.compress(text.encode()))
    return str(file)


def test_the_completed_jobs_of_a_log_become_series(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", log(tmp_path), "--by", "user,program"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "group,series,kind,started_at,ended_at,value,run",
        "machine-1.2,7/3,application,1010,1110,100,1",
        "machine-1.2,8/unknown,application,1020,1050,30,4",
        "machine-1.2,8/unknown,application,1020,1050,30,5",
    ]
    assert err.endswith("3 jobs, 2 lines left out\n")
    series = tmp_path / "series.csv"
    series.write_text(out)
    first, second = histories.read([str(series)])
    assert (len(first.observations), len(second.observations)) == (1, 2)  # equal jobs are two runs


@pytest.mark.parametrize(
    ("by", "series"), [("queue,processors", "1/4"), ("group", "2"), ("requested,partition", "600/unknown")]
)
def test_series_share_the_given_fields(
    by: str, series: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", log(tmp_path), "--by", by]) == 0
    assert capsys.readouterr().out.splitlines()[1].split(",")[1] == series


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("; nothing\n", "expected jobs that completed, in SWF; got none"),
        ("1 2 3\n", "line 1, fields: expected 18"),
        ("; UnixStartTime: today\n", "line 1, UnixStartTime: expected a number"),
    ],
)
def test_a_log_without_usable_jobs_is_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", log(tmp_path, text)]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert message in err


def test_an_unknown_field_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["jobs", log(tmp_path), "--by", "user,colour"])
    assert "got 'colour'" in capsys.readouterr().err
