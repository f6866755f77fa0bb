"""Inca reporters: parsing of their reports, hostile XML, and runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.inca import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, InvalidIncaReport, parse_report, parse_xml
from tests.probes.cpu_time import assert_linear
from tests.probes.runs import install, logged, metrics, run_locally, units

DATA = Path(__file__).parent / "data" / "inca"
PERFORMANCE = (DATA / "performance.xml").read_text()
FAILED = (DATA / "unit_failed.xml").read_text()
DONE = "<exitStatus><completed>true</completed></exitStatus>"

LAUGHS = """\
<?xml version="1.0"?>
<!DOCTYPE report [
  <!ENTITY a "ha">
  <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
  <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
  <!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">
  <!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;">
  <!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;">
  <!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;">
  <!ENTITY h "&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;">
  <!ENTITY i "&h;&h;&h;&h;&h;&h;&h;&h;&h;&h;">
]>
<report><name>&i;</name></report>
"""


def test_name_verdict_statistics_and_log_are_parsed() -> None:
    report = parse_report(PERFORMANCE)
    assert (report.name, report.is_completed, report.error_message) == (
        "network.transfer.performance",
        True,
        "",
    )
    assert [(statistic.name, statistic.value, statistic.units) for statistic in report.statistics] == [
        ("transfer.4_streams.bandwidth", "412.5", "Mb/s"),
        ("transfer.4_streams.elapsed", "1939", "ms"),
        ("transfer.4_streams.retries", "1", ""),
        ("transfer.1_stream.bandwidth", "TBD", "Mb/s"),
    ]
    copying = "system: copy -p 4 file:/tmp/a gsiftp://dtn.other.example.org/tmp/b 2>&1"
    assert report.log == (
        (copying, "debug"),
        ("warn: second attempt", "warning"),
        ("debug: removed", "debug"),
    )


def test_statistics_of_usage_reports_use_names_as_ids() -> None:
    usage = (
        "<report><body><usage><entry><type>user</type><name>ana</name><statistics><statistic><name>count</name>"
        f"<value>3</value></statistic></statistics></entry></usage></body>{DONE}</report>"
    )
    assert [statistic.name for statistic in parse_report(usage).statistics] == ["ana.count"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not XML: no element found"),
        ("command not found", "not XML: syntax error"),
        (PERFORMANCE[:900], "not XML: no element found"),
        (PERFORMANCE + "<more/>", "not XML: junk after document element"),
        ("<report>", "not XML"),
        ("<html><body>404</body></html>", "the root is 'html', expected 'report'"),
        ("<report><name>x</name></report>", "exitStatus/completed: expected true or false, got None"),
        (FAILED.replace("false", "perhaps"), "exitStatus/completed: expected true or false, got 'perhaps'"),
        ("<report>&undefined;</report>", "not XML: undefined entity"),
        ("<x>" * 10 + "\0", "the root is 'x'"),
    ],
)
def test_invalid_reports_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidIncaReport) as raised:
        parse_report(text)
    assert message in str(raised.value)


def test_billion_laughs_are_refused_at_the_doctype() -> None:
    with pytest.raises(InvalidIncaReport, match=r"a DOCTYPE \(report\), which is not allowed"):
        parse_report(LAUGHS)


@pytest.mark.parametrize(
    "doctype",
    [
        "<!DOCTYPE report>",
        '<!DOCTYPE report SYSTEM "http://127.0.0.1:1/no.dtd">',
        '<!DOCTYPE report PUBLIC "-//x//y" "file:///etc/passwd">',
        '<!DOCTYPE report [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
        '<!DOCTYPE report [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    ],
)
def test_every_doctype_is_refused(doctype: str) -> None:
    with pytest.raises(InvalidIncaReport, match="a DOCTYPE"):
        parse_report(f"<?xml version='1.0'?>{doctype}<report><name>&x;</name>{DONE}</report>")


def test_an_external_entity_is_never_included(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the key")
    text = f'<!DOCTYPE report [<!ENTITY x SYSTEM "{secret.as_uri()}">]><report><name>&x;</name></report>'
    install(tmp_path, "reporter", f"cat <<'END'\n{text}\nEND")
    report = run_locally("inca", tmp_path, {"command": "reporter"})
    assert report.outcome == "failed"
    assert "printed no Inca report: a DOCTYPE" in report.reason
    assert "the key" not in repr(report)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<report>{'x' * MAX_BYTES}</report>", f"bytes, expected at most {MAX_BYTES}"),
        ("<report>" + "<a>" * MAX_DEPTH, f"more than {MAX_DEPTH} levels"),
        ("<report>" + "<a/>" * MAX_ELEMENTS, f"{MAX_ELEMENTS} elements"),
    ],
)
def test_reports_beyond_the_limits_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidIncaReport, match=message):
        parse_report(text)


def test_a_report_of_the_maximum_size_is_parsed_in_linear_time() -> None:
    piece = "<a/>some text in between "
    assert_linear(
        parse_xml, lambda size: "<report>" + piece * (size // len(piece) - 1) + "</report>", MAX_BYTES
    )


def test_a_declared_encoding_is_ignored() -> None:
    text = f"<?xml version='1.0' encoding='ISO-8859-1'?><report><name>Zürich</name>{DONE}</report>"
    assert parse_report(text).name == "Zürich"


def test_a_run_has_the_statistics_in_si_units_and_the_log(tmp_path: Path) -> None:
    report = run_locally("inca", tmp_path, {"command": f"cat {DATA / 'performance.xml'}"})
    assert report.outcome == "passed", report.reason
    assert metrics(report) == {
        "inca.transfer.4_streams.bandwidth": 412.5e6 / 8,
        "inca.transfer.4_streams.elapsed": 1.939,
        "inca.transfer.4_streams.retries": 1,
    }
    assert sorted(units(report).values()) == ["bytes_per_second", "count", "seconds"]
    warnings = ["warn: second attempt", "not a number: transfer.1_stream.bandwidth is 'TBD'"]
    assert logged(report, "warning") == warnings


def test_a_reporter_that_did_not_complete_fails_with_its_error_message(tmp_path: Path) -> None:
    report = run_locally("inca", tmp_path, {"command": f"cat {DATA / 'unit_failed.xml'}"})
    assert report.failure is not None
    assert (report.outcome, report.failure.stage, report.failure.resource) == (
        "failed",
        "verdict",
        "at-target",
    )
    assert report.failure.message == (
        "grid.login.unit: remoteLogin failed: connect to host login.other.example.org port 22: "
        "Connection refused"
    )


def test_the_report_decides_not_the_exit_status(tmp_path: Path) -> None:
    install(tmp_path, "reporter", f"cat {DATA / 'performance.xml'}; exit 1")
    report = run_locally("inca", tmp_path, {"command": "reporter"})
    assert report.outcome == "passed", report.reason
    assert "completed, but with exit status 1" in logged(report, "warning")


def test_a_program_that_prints_no_report_fails_with_its_stderr(tmp_path: Path) -> None:
    install(tmp_path, "reporter", "echo 'cannot load module Inca' >&2; exit 2")
    report = run_locally("inca", tmp_path, {"command": "reporter"})
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "run_reporter")
    assert "reporter at at-target printed no Inca report: not XML" in report.failure.message
    assert (report.failure.exit_status, report.failure.stderr_tail) == (2, "cannot load module Inca\n")


def test_a_report_that_was_truncated_is_refused(tmp_path: Path) -> None:
    install(tmp_path, "reporter", "echo '<report>'; yes '<a>' | head -c 3000000")
    report = run_locally("inca", tmp_path, {"command": "reporter"})
    assert report.outcome == "failed"
    assert "expected at most" in report.reason
