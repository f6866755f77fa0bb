from __future__ import annotations

import json
from pathlib import Path

import pytest

from reporters.tokens.limits import BadVerdict, from_sweep

GAIN = {"streams": {"readers": 4, "writers": 1}, "saved": 0.2, "low": 0.1, "high": 0.3}


def verdict(directory: Path, document: object) -> Path:
    file = directory / "verdict.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def test_a_limit_that_helps_is_taken_from_the_sweep(tmp_path: Path) -> None:
    assert from_sweep(verdict(tmp_path, {"verdict": "helps", "gain": GAIN})) == (4, 1, "")


@pytest.mark.parametrize(
    ("word", "reason"), [("does not help", "a limit does not help"), ("undecided", "may or may not help")]
)
def test_without_a_limit_that_helps_there_is_none_and_a_reason(
    word: str, reason: str, tmp_path: Path
) -> None:
    readers, writers, why = from_sweep(verdict(tmp_path, {"verdict": word, "gain": GAIN}))
    assert (readers, writers) == (0, 0)
    assert reason in why
    assert "-30.0% to -10.0%" in why


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "expected a JSON object, got []"),
        ({}, "verdict: expected one of helps, does not help, undecided, but it is missing"),
        ({"verdict": "perhaps", "gain": GAIN}, "verdict: expected one of helps"),
        ({"verdict": ["helps"], "gain": GAIN}, "verdict: expected one of helps"),
        ({"verdict": "undecided", "gain": {**GAIN, "low": float("nan")}}, "NaN is not a finite number"),
        ({"verdict": "helps", "gain": {**GAIN, "low": "much"}}, "gain.low: expected a finite number"),
        (
            {"verdict": "helps", "gain": {**GAIN, "streams": {"readers": 0, "writers": 1}}},
            "gain.streams.readers: expected an integer >= 1, got 0",
        ),
    ],
)
def test_another_document_is_refused_with_the_command_that_writes_one(
    document: object, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(
        BadVerdict, match="expected the output of python -m forecasting sweet-spot --json"
    ) as why:
        from_sweep(verdict(tmp_path, document))
    assert reason in str(why.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b'{"verdict":"helps","gain":{"streams":{"readers":1e999,"writers":1},"low":0,"high":1}}',
            "gain.streams.readers: expected a finite number, got inf",
        ),
        (b"[" * 100_000, "nested too deep"),
        (b"\xff", "not UTF-8"),
        (b"", "not JSON"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(content: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "verdict.json"
    file.write_bytes(content)
    with pytest.raises(BadVerdict) as why:
        from_sweep(file)
    assert reason in str(why.value)
    assert "\n" not in str(why.value)


def test_of_a_large_file_no_more_is_read_than_a_verdict_may_have(tmp_path: Path) -> None:
    file = tmp_path / "verdict.json"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)  # a sparse file
    with pytest.raises(BadVerdict, match="too large: expected at most 1048576 bytes"):
        from_sweep(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadVerdict, match=r"cannot read .*none\.json: No such file"):
        from_sweep(tmp_path / "none.json")
