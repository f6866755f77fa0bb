from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from forecasting.__main__ import main

HEADER = "system,workload,kind,class,started_at,seconds,bytes"


def rows(system: str, kind: str, *seconds: float, workload: str = "madbench") -> list[str]:
    """Return a run a day, which reads 1,000 bytes in these seconds and writes as many in half of them."""
    return [
        f"{system},{workload},{kind},{name},2026-01-0{day}T12:00:00Z,{each * share},1000"
        for day, each in enumerate(seconds, start=1)
        for name, share in (("read", 1.0), ("write", 0.5))
    ]


KNOWN = [
    *rows("disk", "application", 10.0, 11.0),
    *rows("disk", "replay", 10.0, 11.0),
    *rows("flash", "application", 1.0, 1.1),
    *rows("flash", "replay", 1.05, 1.155),
]


def written(directory: Path, lines: Sequence[str], header: str = HEADER) -> str:
    file = directory / "runs.csv"
    file.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return str(file)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["elsewhere", *arguments]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def test_each_pair_of_systems_has_its_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, KNOWN)
    title, _, to_flash, to_disk, summary = printed(capsys, file).splitlines()
    assert title == f"{file}, madbench"
    assert " ".join(to_flash.split()) == "disk flash 2 +5.0% +5.0% 100% read +5.0%, write +5.0%"
    assert " ".join(to_disk.split()) == "flash disk 2 -4.8% -4.8% 100% read -4.8%, write -4.8%"
    assert summary == "mean absolute error of means 4.9%; 100% of the runs in their 90 % intervals"


def test_systems_with_replays_only_are_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, [*KNOWN, *rows("tape", "replay", 40.0)])
    *_, from_disk, from_flash = printed(capsys, file).splitlines()
    assert from_disk.startswith("tape from disk: 60 s, 90 % interval 3")
    assert from_flash.startswith("tape from flash: 57.14 s, 90 % interval ")
    document = json.loads(printed(capsys, file, "--json"))
    madbench = document["workloads"]["madbench"]
    assert [each["seconds"] for each in madbench["predicted"]] == pytest.approx([60.0, 57.142857])
    assert madbench["pairs"][0]["median_error"] == pytest.approx(0.05)


def test_workloads_are_separate_and_unfaithful_ones_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = [
        line
        for system in ("disk", "flash")
        for line in (
            *rows(system, "application", 30.0, 30.0, workload="vpic"),
            *rows(system, "replay", 10.0, 10.0, workload="vpic"),
        )
    ]
    output = printed(capsys, written(tmp_path, [*KNOWN, *other])).splitlines()
    reason = (
        "unfaithful: on flash the application takes 3.00 times as long as its replay; expected 0.8 to 1.25"
    )
    assert output[-1] == f"{'flash':<24}{'disk':<24}{reason}"


def without(column: str) -> tuple[list[str], str]:
    place = HEADER.split(",").index(column)

    def cut(line: str) -> str:
        return ",".join(cell for number, cell in enumerate(line.split(",")) if number != place)

    return [cut(line) for line in KNOWN], cut(HEADER)


@pytest.mark.parametrize(
    ("lines", "header", "reason"),
    [
        (*without("seconds"), "expected a column seconds"),
        ([], HEADER, "expected rows below the header, got none"),
        (["disk,m,application,read,0,nan,1"], HEADER, "line 2, seconds: expected a finite number"),
        (["disk,m,application,read,0,-1,1"], HEADER, "line 2, seconds: expected a number from 0, got '-1'"),
        (["disk,m,other,read,0,1,1"], HEADER, "line 2, kind: expected application or replay, got 'other'"),
        (["disk,m,replay,read,0,1,"] * 2, HEADER, "line 3: this replay already has a time of the class read"),
        (
            rows("disk", "application", 1.0, 1.0),
            HEADER,
            "expected at least two systems, got disk for madbench",
        ),
        (
            [*rows("disk", "replay", 1.0), *rows("flash", "replay", 1.0)],
            HEADER,
            "expected runs of the application madbench, got replays only",
        ),
        (
            [*rows("disk", "application", 1.0), *rows("flash", "replay", 1.0)],
            HEADER,
            "expected at least two runs of madbench on a system, to see how much runs differ, got one",
        ),
    ],
)
def test_a_bad_file_gets_one_line_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: Sequence[str], header: str, reason: str
) -> None:
    file = written(tmp_path, lines, header)
    assert main(["elsewhere", file]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert file in output.err
    assert reason in output.err


def test_an_empty_file_gets_one_line_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "empty.csv"
    file.touch()
    assert main(["elsewhere", str(file)]) == 2
    assert "expected a line that names the columns system, workload" in capsys.readouterr().err
