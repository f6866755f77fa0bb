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
    "document",
    [
        [],
        {},
        {"verdict": "perhaps", "gain": GAIN},
        {"verdict": "helps", "gain": {**GAIN, "streams": {"readers": 0, "writers": 1}}},
        {"verdict": "helps", "gain": {**GAIN, "low": "much"}},
    ],
)
def test_another_document_is_refused_with_the_command_that_writes_one(
    document: object, tmp_path: Path
) -> None:
    with pytest.raises(BadVerdict, match="expected the output of python -m forecasting sweet-spot --json"):
        from_sweep(verdict(tmp_path, document))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadVerdict, match=r"cannot read .*none\.json: No such file"):
        from_sweep(tmp_path / "none.json")
