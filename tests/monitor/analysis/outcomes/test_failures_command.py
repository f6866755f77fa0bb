"""``manage.py failures`` names the causes of texts, and proposes signatures as a part of a grid file."""

from __future__ import annotations

import io
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.analysis.signatures import own as own_signatures
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Series
from monitor.operations.gridfile.loading import DepotNames, parse
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import failed_circle_report
from tests.monitor.conftest import NOON


def classify(file: Path, *options: str) -> tuple[list[list[str]], str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("failures", "classify", str(file), *options, stdout=out, stderr=err)
    return [line.split("\t") for line in out.getvalue().splitlines()], err.getvalue().strip()


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return tmp_path / "texts"


def test_each_line_is_a_text(texts: Path) -> None:
    texts.write_text("scp: lost connection\n\nthe cat ate it\nls: x: Stale file handle\n")
    lines, summary = classify(texts)
    assert [line[:2] for line in lines] == [
        ["unknown", "unknown"],
        ["unknown", "unknown"],
        ["stale-file-handle", "storage"],
    ]
    assert summary == "3 texts, 2 unknown"


def test_a_file_may_be_one_text_of_several_lines(texts: Path) -> None:
    texts.write_text("scp failed\nssh: connect to host a port 22: Connection refused\nlost connection\n")
    lines, _ = classify(texts, "--whole")
    assert [line[0] for line in lines] == ["ssh-connect-refused"]


def test_a_line_may_be_the_failure_of_a_report(texts: Path) -> None:
    failure = {"message": "aggregate failed", "stage": "compute", "exit_status": 137, "stderr_tail": ""}
    texts.write_text(json.dumps(failure) + "\n{not JSON, no space left on device\n")
    lines, _ = classify(texts)
    assert [line[0] for line in lines] == ["silent-death", "disk-full"]


def test_signatures_of_a_file_are_added_and_replace_shipped_ones(texts: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "cat-ate-it: {title: Cat, category: resource, severity: minor, patterns: ['the cat ate']}\n"
        "disk-full: {title: Full, category: user, severity: minor, patterns: ['no space left']}\n"
    )
    texts.write_text("the cat ate it\nno space left on device\n")
    lines, _ = classify(texts, "--signatures", str(mine))
    assert [line[:2] for line in lines] == [["cat-ate-it", "resource"], ["disk-full", "user"]]


def test_an_empty_file_has_no_texts(texts: Path) -> None:
    texts.write_bytes(b"")
    assert classify(texts) == ([], "0 texts, 0 unknown")


def test_bytes_that_are_no_utf_8_are_classified_all_the_same(texts: Path) -> None:
    texts.write_bytes(b"write \xff\xfe: No space left on device\n")
    assert classify(texts)[0][0][0] == "disk-full"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"stage": "init"}', 'texts:1: expected "message": a text'),
        ('{"message": "a", "exit_status": "1"}', 'texts:1: expected "exit_status": a whole number, got "1"'),
        ('{"message": "a", "tools": "ssh"}', 'texts:1: expected "tools": a list of texts, got "ssh"'),
        ('{"message": "a", "stage": 1}', 'texts:1: expected "stage": a text, got 1'),
    ],
)
def test_a_malformed_failure_is_refused_with_its_line(texts: Path, line: str, message: str) -> None:
    texts.write_text(line + "\n")
    with pytest.raises(CommandError, match=message.replace("[", r"\[")):
        classify(texts)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot read .*nothing: No such file or directory"):
        classify(tmp_path / "nothing")


def test_a_broken_file_of_signatures_is_named_with_its_line(texts: Path, tmp_path: Path) -> None:
    texts.write_text("x\n")
    mine = tmp_path / "mine.yaml"
    mine.write_text("a: {title: A, category: user, severity: minor, patterns: ['(']}\n")
    with pytest.raises(CommandError, match=r"mine\.yaml:1:59: signature a, key .*RE2: missing \): \($"):
        classify(texts, "--signatures", str(mine))


def test_own_signatures_of_the_depot_are_used_if_asked_for(texts: Path, circle: Series) -> None:
    values = {"title": "Cat", "category": "resource", "severity": "minor", "patterns": ["the cat ate"]}
    own_signatures.accept("cat", values, "chief", NOON)
    texts.write_text("the cat ate it\n")
    assert [line[0] for line in classify(texts)[0]] == ["unknown"]
    assert [line[0] for line in classify(texts, "--own")[0]] == ["cat"]


def test_proposed_signatures_are_printed_as_a_section_of_a_grid_file(
    circle: Series, capsys: pytest.CaptureFixture[str]
) -> None:
    now = timezone.now()
    for number in range(3):
        message = f'the "cat" {number}: {{ate}} it\'s #1 cable\x07\u2028in /x/{number}'
        report = failed_circle_report(now - timedelta(minutes=number), message=message)
        assert ingest(wire.to_json(report)).accepted
    classify_runs(now)
    call_command("failures", "propose")
    out, err = capsys.readouterr()
    assert err == "1 proposals\n"
    grid = parse(b"version: 1\n" + out.encode(), "printed", DepotNames())
    (signature,) = grid.signatures.values()
    assert signature.category == "unknown"
    assert "# 3 runs of 1 series, from " in out
    assert re.search(signature.patterns[0], message)


def test_without_unknown_runs_nothing_is_proposed(circle: Series, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("failures", "propose")
    assert capsys.readouterr() == ("", "0 proposals\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["classify"], "expected a file"),
        (["propose", "x"], "no file"),
        (["propose", "--own"], "no file and no"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("failures", *arguments)
