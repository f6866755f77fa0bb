from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from forecasting.__main__ import main
from forecasting.reading.sweeps import StreamRow, Sweep
from tests.forecasting.sweeps.planted import planted
from tests.forecasting.sweeps.stream_profiles import FLAT, PUBLISHED, swept


def sweep_file(directory: Path, sweep: Sweep) -> str:
    lines = [",".join([*sweep.factors, "pass", "value"])]
    lines += [
        ",".join([*levels, str(measured.number), repr(measured.value)])
        for levels, values in sweep.cells.items()
        for measured in values
    ]
    return written(directory, lines)


def streams_file(directory: Path, rows: Sequence[StreamRow]) -> str:
    lines = ["readers,writers,pass,seconds,barrier_seconds"]
    lines += [f"{row.readers},{row.writers},{row.number},{row.seconds!r},1.5" for row in rows]
    return written(directory, lines)


def written(directory: Path, lines: Sequence[str]) -> str:
    file = directory / "sweep.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def test_effects_prints_terms_levels_and_the_best_combination(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sweep_file(tmp_path, planted(seed=1).sweep)
    first, passes, outliers, *rest = printed(capsys, "effects", file).splitlines()
    assert first == f"{file}: 360 of 1440 combinations, 6 passes; noise of one value 3.0%"
    assert passes.startswith("first pass: set aside; different: -1")
    assert outliers.startswith("outliers: ")
    assert any("may be chance" in line for line in rest)
    assert any(line.endswith("   best") for line in rest)
    assert rest[-2].startswith("best combination by the model: stripe ")


def test_effects_prints_the_same_as_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"{stripe},{width},here,{number},{10 * stripe + width + number / 9}"
        for stripe, width, number in product((1, 2), (1, 2, 4), (1, 2, 3))
    ]
    file = written(tmp_path, ["stripe,width,host,pass,value", *lines])
    document = json.loads(printed(capsys, "effects", file, "--json", "--factors", "stripe,width"))
    assert [effect["term"] for effect in document["terms"] if len(effect["term"]) == 2] == [
        ["stripe", "width"]
    ]
    assert set(document["choice"]["levels"]) == {"stripe", "width"}
    assert {"is_claimed", "q_value", "size", "levels", "best"} <= document["terms"][0].keys()


def test_effects_names_the_values_that_stand_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"{stripe},{width},{number},{900 if (stripe, width, number) == (2, 4, 5) else 100 + number % 3}"
        for stripe, width, number in product((1, 2), (1, 2, 4), range(1, 9))
    ]
    file = written(tmp_path, ["stripe,width,pass,value", *lines])
    text = printed(capsys, "effects", file).splitlines()
    assert text[2].startswith("outliers: 1 of 42 values; ")
    assert text[3] == "  pass 5, stripe 2, width 4: 900"
    flags = json.loads(printed(capsys, "effects", file, "--json"))["flags"]
    assert flags["flagged_values"] == [
        {"pass_number": 5, "levels": {"stripe": "2", "width": "4"}, "value": 900.0}
    ]


def test_many_values_that_stand_out_are_left_to_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sweep_file(tmp_path, planted(seed=1).sweep)
    assert printed(capsys, "effects", file).splitlines()[3] == "  (--json lists them)"
    flags = json.loads(printed(capsys, "effects", file, "--json"))["flags"]
    assert len(flags["flagged_values"]) == flags["flagged"] > 10


def test_sweet_spot_prints_settings_and_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = streams_file(tmp_path, swept(PUBLISHED["xeon-eide"], seed=1))
    *_, headings, first, _, _, last, _, verdict = printed(capsys, "sweet-spot", file).splitlines()
    assert headings.split() == ["readers", "writers", "seconds", "slower", "barrier", "s"]
    assert first.split()[:2] == ["1", "1"]
    assert first.endswith("best")
    assert not last.endswith("best")
    assert verdict.startswith("a limit helps: readers 1, writers 1 saves 2")


def test_sweet_spot_says_by_how_much_a_limit_is_slower(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {1: 110.0, 2: 100.0}
    lines = [
        f"{readers},1,{number},{seconds + number / 10}"
        for number, (readers, seconds) in product((1, 2, 3), times.items())
    ]
    verdict = printed(capsys, "sweet-spot", written(tmp_path, [STREAMS, *lines])).splitlines()[-1]
    assert verdict.startswith("a limit does not help: readers 1, writers 1 takes 10.0% [")
    assert verdict.endswith("] more time than readers 2, writers 1")


def test_sweet_spot_prints_what_to_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = streams_file(tmp_path, swept(PUBLISHED["xeon-eide"], seed=1))
    text = printed(capsys, "sweet-spot", file, "--advice")
    assert "tokens serve AREA --readers 1 --writers 1" in text
    assert "Licenses=AREA:1" in text


def test_sweet_spot_prints_the_same_as_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = streams_file(tmp_path, swept(FLAT, seed=1))
    document = json.loads(printed(capsys, "sweet-spot", file, "--json"))
    assert document["unlimited"] == {"readers": 8, "writers": 8}
    assert document["verdict"] in {"does not help", "undecided"}
    assert document["settings"][0]["streams"].keys() == {"readers", "writers"}


EFFECTS = "stripe,pass,value"
STREAMS = "readers,writers,pass,seconds"


@pytest.mark.parametrize(
    ("command", "lines", "complaint"),
    [
        ("effects", ["stripe,value", "1,2"], "line 1: expected a column pass, got 'stripe', 'value'"),
        ("effects", ["pass,value", "1,2"], "line 1: expected a column for each factor, got pass and value"),
        (
            "effects",
            [EFFECTS, "a,1,nan"],
            "line 2, value: expected a finite number of at most 1e+300, got 'nan'",
        ),
        ("effects", [EFFECTS, "a,1,0"], "line 2, value: expected a positive number, got '0'"),
        ("effects", [EFFECTS, "a,0,1"], "line 2, pass: expected a whole number from 1 to 1000000, got '0'"),
        ("effects", [EFFECTS, "a,1,1", "a,1,2"], "line 3: pass 1 already has a value for these levels"),
        ("effects", [EFFECTS, "a,1,1", "b,1,2"], "expected at least two passes, got pass 1 only"),
        (
            "effects",
            [EFFECTS, "a,1,1", "a,2,2"],
            "stripe: expected a factor with at least two levels, got 'a'",
        ),
        ("effects", [EFFECTS, "a,1,1", "b,2,2"], "stripe: 2 of 2 rows have a level of their own: leave the"),
        (
            "effects",
            ["size,started_at,pass,value", *(f"{row % 2},{row},{row % 3 + 1},9" for row in range(12))],
            "started_at: 12 of 12 rows have a level of their own: leave the column out (--factors names",
        ),
        (
            "effects",
            [EFFECTS, *(f"{level},{number},9" for level in range(1001) for number in (1, 2))],
            "1001 levels are too many for a model of 1001 combinations; stripe has the most, 1001: put its",
        ),
        ("effects", [EFFECTS], "expected rows below the header, got none"),
        (
            "sweet-spot",
            [STREAMS, "1,0,1,2"],
            "writers: expected a whole number from 1 to 1000000, got '0'",
        ),
        ("sweet-spot", [STREAMS, "1,1,1,-2"], "line 2, seconds: expected a positive number, got '-2'"),
        (
            "sweet-spot",
            [STREAMS, "1,1,1,2", "1,1,1,2"],
            "pass 1 already has a run with readers 1 and writers 1",
        ),
        (
            "sweet-spot",
            [STREAMS, "1,1,1,2", "1,4,1,2"],
            "expected at least two passes after pass 1, which is set aside, got none",
        ),
        (
            "sweet-spot",
            [STREAMS, "1,1,1,2", "1,4,1,2", "1,1,2,2", "1,4,2,2"],
            "expected at least two passes after pass 1, which is set aside, got 1",
        ),
        (
            "sweet-spot",
            [STREAMS, "4,1,1,2", "4,1,2,2", "4,1,3,2"],
            "expected at least two settings of readers and writers after pass 1, got only 4 readers and 1",
        ),
        ("sweet-spot", [STREAMS, "1,1,1,nan"], "line 2, seconds: expected a finite number"),
        ("sweet-spot", ["readers,writers,pass", "1,1,1"], "expected a column seconds"),
    ],
)
def test_a_file_that_is_no_sweep_is_refused_with_its_line_and_column(
    command: str, lines: Sequence[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, written(tmp_path, lines)]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.splitlines()) == 1
