"""Nagios plugins: parsing of their output, and runs with each exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probes.common.external_metrics import MAX_METRICS
from probes.nagios import InvalidPerfdata, metrics_of, parse_item, parse_output, parse_perfdata, parse_range
from reporters.report import Report, from_json, to_json
from tests.probes.common.log_only_grid import LogOnlyGrid
from tests.probes.cpu_time import assert_linear
from tests.probes.runs import install, logged, metrics, run_locally, units


@pytest.mark.parametrize(
    ("text", "summary", "long_text", "perfdata"),
    [
        ("", "", (), ""),
        ("PING OK", "PING OK", (), ""),
        ("PING OK | rta=0.8ms", "PING OK", (), "rta=0.8ms"),
        (
            "DISK OK - free space: / 3326 MB (56%); | /=2643MB;5948;5958;0;5968\n"
            "/ 15272 MB (77%);\n"
            "/boot 68 MB (69%); | /boot=68MB;88;93;0;98\n"
            "/home=69357MB;253404;253409;0;253414\n",
            "DISK OK - free space: / 3326 MB (56%);",
            ("/ 15272 MB (77%);", "/boot 68 MB (69%);"),
            "/=2643MB;5948;5958;0;5968\n /boot=68MB;88;93;0;98\n/home=69357MB;253404;253409;0;253414",
        ),
    ],
)
def test_output_is_a_line_of_text_then_long_text_then_perfdata(
    text: str, summary: str, long_text: tuple[str, ...], perfdata: str
) -> None:
    output = parse_output(text)
    assert (output.summary, output.long_text, output.perfdata) == (summary, long_text, perfdata)


@pytest.mark.parametrize(
    ("text", "label", "value", "unit", "bounds"),
    [
        ("load1=0.010", "load1", 0.01, "", {}),
        ("time=1.5s;;;0", "time", 1.5, "s", {"min": 0}),
        ("/=2643MB;59;58;0;68", "/", 2643, "MB", {"warn.above": 59, "crit.above": 58, "min": 0, "max": 68}),
        ("'two words'=-3.5%;1:2", "two words", -3.5, "%", {"warn.below": 1, "warn.above": 2}),
        ("x=3;;@1:2", "x", 3, "", {"crit.from": 1, "crit.to": 2}),
        ("'it''s = fine'=7c", "it's = fine", 7, "c", {}),
        ("temp=U;~:10;5:", "temp", None, "", {"warn.above": 10, "crit.below": 5}),
        ("small=1e-05s", "small", 1e-5, "s", {}),
    ],
)
def test_an_item_of_perfdata_has_a_label_a_value_a_unit_and_bounds(
    text: str, label: str, value: float | None, unit: str, bounds: dict[str, float]
) -> None:
    item = parse_item(text)
    assert (item.label, item.value, item.unit, item.bounds) == (label, value, unit, bounds)


@pytest.mark.parametrize(
    "text", ["", "x", "=1", "x=", "x=1,5s", "x=1;2;3;4;5;6", "x=y=1", "'x=1", "x=1;10..20", "x=1;;;zero"]
)
def test_an_item_outside_the_guidelines_is_invalid(text: str) -> None:
    with pytest.raises(InvalidPerfdata):
        parse_item(text)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("10", {"above": 10}),
        ("10:", {"below": 10}),
        (":10", {"above": 10}),
        ("~:10", {"above": 10}),
        ("10:20", {"below": 10, "above": 20}),
        ("-5:-1.5", {"below": -5, "above": -1.5}),
        ("@10:20", {"from": 10, "to": 20}),
        ("@~:20", {"to": 20}),
        ("~:", {}),
    ],
)
def test_a_range_says_where_it_alerts(text: str, ends: dict[str, float]) -> None:
    assert parse_range(text) == ends


def test_equal_names_are_numbered() -> None:
    items, _ = parse_perfdata("/a=1 a=2 'a/'=3;4 a=5;6")
    values = {metric.name: metric.value for metric in metrics_of(items).collected(LogOnlyGrid())}  # type: ignore[arg-type]
    assert values == {
        "perfdata.a": 1,
        "perfdata.a.2": 2,
        "perfdata.a.3": 3,
        "perfdata.a.warn.above": 4,
        "perfdata.a.4": 5,
        "perfdata.a.warn.above.2": 6,
    }


@pytest.mark.parametrize(
    "text_of",
    [
        lambda size: "' " * (size // 2),
        lambda size: "'" * size,
        lambda size: "x=" * (size // 2),
        lambda size: "x=1;" * (size // 4),
        lambda size: "a=1 " * (size // 4),
        lambda size: "a=" + "1" * size + '"',
        lambda size: "a=1;" + "1" * (size // 2) + ":" + "1" * (size // 2) + "x",
    ],
)
def test_hostile_perfdata_is_parsed_in_linear_time(text_of: Callable[[int], str]) -> None:
    assert_linear(parse_perfdata, text_of, 60_000)


def test_ok_passes_with_its_perfdata_in_si_units(tmp_path: Path) -> None:
    script = "echo \"PING OK - loss 0% | rta=0.8ms;100;500;0 pl=25%;20;60 'out /'=3KB u=U\""
    install(tmp_path, "check_ping", script)
    report = run_locally("nagios", tmp_path, {"command": "check_ping"})
    assert report.outcome == "passed", report.reason
    assert metrics(report) == pytest.approx(
        {
            "nagios.status": 0,
            "perfdata.rta": 0.0008,
            "perfdata.rta.warn.above": 0.1,
            "perfdata.rta.crit.above": 0.5,
            "perfdata.rta.min": 0,
            "perfdata.pl": 0.25,
            "perfdata.pl.warn.above": 0.2,
            "perfdata.pl.crit.above": 0.6,
            "perfdata.out": 3000,
        }
    )
    assert {units(report)[name] for name in ("perfdata.rta", "perfdata.rta.warn.above")} == {"seconds"}
    assert units(report)["perfdata.pl"] == "ratio"
    assert "PING OK - loss 0%" in logged(report, "info")


def test_arguments_reach_the_plugin_unchanged_and_no_shell_expands_them(tmp_path: Path) -> None:
    install(tmp_path, "check_args", f'printf "%s\\n" "$@" > {tmp_path}/arguments; echo OK')
    command = f"check_args -w 10 'two  words' '$(touch {tmp_path}/no)' ; '|' > {tmp_path}/no"
    report = run_locally("nagios", tmp_path, {"command": command})
    assert report.outcome == "passed", report.reason
    arguments = ["-w", "10", "two  words", f"$(touch {tmp_path}/no)", ";", "|", ">", f"{tmp_path}/no"]
    assert (tmp_path / "arguments").read_text().splitlines() == arguments
    assert not (tmp_path / "no").exists()


def test_a_warning_passes_with_a_warning_in_the_log(tmp_path: Path) -> None:
    install(tmp_path, "check_load", "echo 'LOAD WARNING - 9 | load1=9;8'; exit 1")
    report = run_locally("nagios", tmp_path, {"command": "check_load"})
    assert report.outcome == "passed", report.reason
    assert metrics(report)["nagios.status"] == 1
    assert "LOAD WARNING - 9" in logged(report, "warning")


def test_critical_fails_with_the_first_line_and_keeps_the_metrics(tmp_path: Path) -> None:
    install(
        tmp_path, "check_disk", "printf 'DISK CRITICAL - 1%% free | /=99%%\\nmore\\n'; echo why >&2; exit 2"
    )
    report = run_locally("nagios", tmp_path, {"command": "check_disk"})
    assert report.outcome == "failed"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("verdict", "at-target")
    assert (report.failure.message, report.failure.exit_status) == ("DISK CRITICAL - 1% free", 2)
    assert report.failure.stderr_tail == "why\n"
    assert metrics(report)["perfdata._"] == pytest.approx(0.99)
    assert "more" in logged(report, "info")


def test_unknown_is_no_data(tmp_path: Path) -> None:
    install(tmp_path, "check_x", "echo 'UNKNOWN - no such argument: -q'; exit 3")
    report = run_locally("nagios", tmp_path, {"command": "check_x -q"})
    assert (report.outcome, report.failure) == ("no_data", None)
    assert "check_x returned UNKNOWN at at-target: UNKNOWN - no such argument: -q" in report.reason
    assert metrics(report) == {"nagios.status": 3}


@pytest.mark.parametrize(
    ("script", "stage", "message"),
    [
        ("exit 4", "verdict", "check_x ended with the unknown exit status 4: (no output)"),
        ("kill -9 $$", "run_plugin", "check_x was killed by signal 9 at at-target"),
        ("exec no-such-program", "run_plugin", "check_x was not found at at-target"),
    ],
)
def test_any_other_end_of_a_plugin_is_a_failure(
    tmp_path: Path, script: str, stage: str, message: str
) -> None:
    install(tmp_path, "check_x", script)
    assert_failed(run_locally("nagios", tmp_path, {"command": "check_x"}), stage, message)


def test_a_plugin_that_exceeds_its_time_limit_fails(tmp_path: Path) -> None:
    install(tmp_path, "check_x", "sleep 600")
    report = run_locally("nagios", tmp_path, {"command": "check_x", "timeout_seconds": 0.5})
    assert_failed(report, "run_plugin", "check_x at at-target ran longer than 0.5 s and was stopped")


def assert_failed(report: Report, stage: str, message: str) -> None:
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", stage)
    assert message in report.failure.message


def test_a_plugin_that_is_not_installed_fails_in_init(tmp_path: Path) -> None:
    report = run_locally("nagios", tmp_path, {"command": "check_nothing -w 1"})
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "init")
    assert "check_nothing is not installed at at-target" in report.reason


@pytest.mark.parametrize("command", ["", "   ", "''", "check_x 'unclosed"])
def test_an_empty_or_malformed_command_is_refused_before_any_stage(tmp_path: Path, command: str) -> None:
    report = run_locally("nagios", tmp_path, {"command": command})
    assert (report.outcome, [stage.name for stage in report.stages]) == ("broken", ["cleanup"])
    assert report.reason.startswith("invalid parameters: command: ")
    assert "command: " in report.reason


def test_excess_perfdata_is_dropped_and_the_report_fits_its_limit(tmp_path: Path) -> None:
    install(
        tmp_path,
        "check_x",
        "echo OK; i=0; echo '|'; while [ $i -lt 3000 ]; do echo label$i=$i; i=$((i+1)); done",
    )
    report = run_locally("nagios", tmp_path, {"command": "check_x"})
    assert report.outcome == "passed", report.reason
    assert len(report.metrics) == MAX_METRICS + 1
    assert any("values dropped" in line for line in logged(report, "warning"))
    assert len(from_json(to_json(report)).metrics) == MAX_METRICS + 1


def test_invalid_perfdata_is_logged_and_the_rest_is_kept(tmp_path: Path) -> None:
    install(tmp_path, "check_x", "echo 'OK | good=1 bad=1,5 =3 fine=2'")
    report = run_locally("nagios", tmp_path, {"command": "check_x"})
    assert metrics(report) == {"nagios.status": 0, "perfdata.good": 1, "perfdata.fine": 2}
    assert logged(report, "warning") == ["invalid perfdata: 'bad=1,5'", "invalid perfdata: '=3'"]
