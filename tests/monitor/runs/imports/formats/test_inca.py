"""Reports of Inca's reporters: a series for each host and reporter."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.runs.imports.formats.base import Unreadable
from tests.monitor.runs.imports.formats.reading import DATA, metrics, read, refused, runs

TWO = (DATA / "inca.xml").read_bytes()
BOMB = (
    '<!DOCTYPE report [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    "<report><name>&b;</name><exitStatus><completed>true</completed></exitStatus></report>"
)
FILE = (
    '<!DOCTYPE report [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    "<report><name>&a;</name><exitStatus><completed>true</completed></exitStatus></report>"
)


def test_concatenated_reports_are_runs_of_one_series() -> None:
    passed, failed = runs(read("inca", TWO))
    assert passed.slot == datetime(2006, 3, 1, 12, tzinfo=UTC)
    assert passed.series == failed.series
    assert passed.series.startswith("login1-example-org-grid-middleware-gridftp-copy-")
    assert metrics(passed) == {
        "inca.gridftp.copy.time": (1.5, "seconds"),
        "inca.gridftp.copy.rate": (66.5e6, "bytes_per_second"),
    }
    assert (failed.outcome, failed.reason) == ("failed", "globus-url-copy: connection refused")


def test_arguments_are_parameters_except_the_general_ones() -> None:
    passed, failed = runs(read("inca", TWO))
    parameters = {"reporter": "grid.middleware.gridftp.copy", "version": "3", "size": "100"}
    assert passed.parameters == failed.parameters == parameters


def test_the_host_of_a_report_is_the_resource() -> None:
    assert runs(read("inca", TWO))[0].resource.startswith("login1-example-org-")


@pytest.mark.parametrize("hostile", [BOMB, FILE])
def test_a_report_that_declares_entities_is_refused_and_the_next_one_read(hostile: str) -> None:
    items = read("inca", hostile.encode() + TWO)
    assert refused(items) == [
        "report 1: report: expected an Inca report, got 'a DOCTYPE (report), which is not allowed'"
    ]
    assert len(runs(items)) == 2


def test_a_report_without_a_valid_time_is_malformed() -> None:
    items = read("inca", TWO.replace(b"<gmt>2006-03-01T12:00:00Z</gmt>", b"<gmt>noon</gmt>"))
    assert len(runs(items)) == 1
    assert refused(items)[0].startswith("report 1: gmt: expected a time")


def test_a_file_truncated_inside_a_report_is_unreadable() -> None:
    imported = []
    with pytest.raises(Unreadable, match="report 2: expected an Inca report, </report> at its end"):
        imported = read("inca", TWO[:-40])
    assert not imported


def test_an_unterminated_report_is_refused_at_a_bounded_size() -> None:
    with pytest.raises(Unreadable, match="report 1: expected an Inca report of at most 1000000 bytes"):
        read("inca", b"<report>" + b"x" * 2_000_000)
