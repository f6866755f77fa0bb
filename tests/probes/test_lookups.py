"""Lookups: the database and its answers, damaged files, and sites without the module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from probes.base import ProbeFailed
from probes.lookups import parse_result
from tests.probes.runs import install, metrics, run_locally

PROGRAM = Path(__file__).resolve().parents[2] / "probes" / "kernels" / "lookups.py"
SMALL = {"rows": 500, "row_bytes": 50, "lookups": 10, "scans": 2}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "lookups.db"
    loaded = run("load", file, 500, 50, 3)
    assert parse_result(loaded.stdout, "load", "here")[:2] == (500, file.stat().st_size), loaded.stderr
    return file


def test_lookups_and_scans_of_the_database_are_counted(database: Path) -> None:
    assert parse_result(run("lookup", database, 500, 50, 3, 20).stdout, "lookup", "here")[:2] == (20, 1000)
    assert parse_result(run("scan", database, 500, 50, 3, 2).stdout, "scan", "here")[:2] == (2, 50_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lookup", "{}", 500, 50, 4, 5), "wrong answer for row"),  # another seed
        (("scan", "{}", 501, 50, 3, 1), "wrong answer for the scan"),
        (("scan", "{}", 500, 50, 3, "x"), "invalid literal"),
        (("drop", "{}", 500, 50, 3), "expected load, lookup or scan"),
        (("load", "{}", 500, 50, 3), "table readings already exists"),
        (("load",), "cannot start lookups"),
    ],
)
def test_a_wrong_answer_or_argument_ends_with_one_line(
    database: Path, arguments: tuple[object, ...], message: str
) -> None:
    completed = run(*(str(word).format(database) for word in arguments))
    assert completed.returncode == 1
    assert message in completed.stderr
    assert completed.stderr.count("\n") == 1


def test_a_damaged_database_is_reported(database: Path) -> None:
    with database.open("rb+") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    for command in (("lookup", 5), ("scan", 1)):
        completed = run(command[0], database, 500, 50, 3, command[1])
        assert (completed.returncode, completed.stderr.count("\n")) == (1, 1)


def test_a_run_measures_loading_lookups_and_scans(tmp_path: Path) -> None:
    report = run_locally("lookups", tmp_path, SMALL)
    assert report.outcome == "passed", report.reason
    assert metrics(report).keys() == {
        "scratch.full",
        "load.seconds",
        "load.bytes_per_second",
        "lookup.seconds",
        "lookup.operations_per_second",
        "scan.seconds",
        "scan.bytes_per_second",
    }


def test_a_traced_run_has_the_seconds_of_its_calls_by_class(tmp_path: Path) -> None:
    report = run_locally("lookups", tmp_path, {**SMALL, "trace": True})
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    table_bytes = SMALL["rows"] * SMALL["row_bytes"]
    assert values["io.write.bytes"] > table_bytes
    assert values["io.read.bytes"] > SMALL["scans"] * table_bytes
    assert 0 < values["io.seconds"] < values["io.elapsed.seconds"]


def test_python_without_sqlite_is_no_data(tmp_path: Path) -> None:
    install(tmp_path, "python3", 'case "$*" in *sqlite3*) exit 1;; esac; exec /usr/bin/python3 "$@"')
    report = run_locally("lookups", tmp_path, SMALL)
    assert report.outcome == "no_data"
    assert report.reason.endswith("Python at at-target has no module sqlite3")


@pytest.mark.parametrize("text", ["", "load 1 2", "scan 1 2 3.0", "load 0 2 3.0", "load x 2 3.0"])
def test_unusable_output_of_lookups_is_a_failure(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of lookups at iu"):
        parse_result(text, "load", "iu")
