from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forecasting import commands, methods
from forecasting.__main__ import main
from forecasting.evaluation import choice
from tests import realdata

GOLDEN = realdata.DATA / "nws-golden" / "nws-2.0.5-oracle.csv.gz"
ROOT = Path(__file__).parents[3]


def table(directory: Path, *lines: str, name: str = "some.csv") -> str:
    file = directory / name
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(file)


def runs(directory: Path, count: int = 60) -> str:
    """Return a file with an application and a probe that runs before it, twice a day."""
    draw = random.Random(3)
    lines = ["group,series,kind,started_at,ended_at,value"]
    for index in range(count):
        at, load = 43_200.0 * index, draw.uniform(20.0, 60.0)
        lines += [
            f"here,ping,probe,{at},{at + load},{load}",
            f"here,app,application,{at + 99},{at + 500},{load + 300}",
        ]
    return table(directory, *lines)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    message = capsys.readouterr()
    assert message.err == ""
    return message.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    message = capsys.readouterr()
    assert message.out == ""
    assert message.err.count("\n") == 1
    return message.err


def test_every_command_is_a_file_and_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"backtest", "choose", "queue_bounds", "replay", "study"} <= set(commands.names())
    for name in commands.names():
        with pytest.raises(SystemExit) as ended:
            main([name.replace("_", "-"), "--help"])
        assert ended.value.code == 0
        assert "usage: python -m forecasting" in capsys.readouterr().out


@pytest.mark.skipif(not GOLDEN.exists(), reason="the answers of the original program are not on this machine")
def test_an_exact_replay_prints_the_answers_of_the_original(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(GOLDEN, "rt", newline="") as lines:
        rows = [row for row in csv.reader(lines) if row[0] in {"case", "swf-ctc-q1-waits-first600"}]
    file = tmp_path / "waits.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(row[2:4] for row in rows)
    document = list(
        csv.reader(io.StringIO(printed(capsys, "replay", "--method", "nws", "--exact", str(file))))
    )
    assert document[0] == [rows[0][1], *rows[0][4:]]
    assert len(document) == len(rows) == 601
    for ours, original in zip(document[1:], rows[1:], strict=True):
        assert [float(cell) for cell in ours] == pytest.approx(
            [float(cell) for cell in [original[1], *original[4:]]], rel=1e-12, abs=0.0
        )


def test_another_method_replays_its_median_and_mean_or_why_it_abstained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = table(tmp_path, "time,value", "1,5", "2,7")
    assert printed(capsys, "replay", "--method", "last_value", file).splitlines() == [
        "step,median,mean,abstained",
        "1,5.0,5.0,",
        "2,7.0,7.0,",
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["time,value", "2,5", "1,7"],
            "some.csv, line 3, time: expected no earlier time than in the line before",
        ),
        (["time,value", "2,5", "3,nan"], "some.csv, line 3, value: expected a finite number"),
        (["when,value", "2,5"], "some.csv, line 1: expected a column time, got 'when', 'value'"),
        (["time,value"], "some.csv: expected rows below the header, got none"),
    ],
)
def test_input_that_cannot_be_replayed_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], message: str
) -> None:
    error = refused(capsys, "replay", table(tmp_path, *lines))
    assert error.startswith("python -m forecasting replay: ")
    assert message in error


def test_only_nws_is_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--exact is an option of nws alone" in refused(
        capsys, "replay", "--exact", "--method", "last_value", table(tmp_path, "time,value", "1,2")
    )


def test_a_backtest_judges_every_method_on_every_application(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(printed(capsys, "backtest", "--json", "--processes", "1", runs(tmp_path)))
    assert document["warm_up"] == 40
    (series,) = document["series"]
    assert [series[name] for name in ("group", "series", "kind", "runs")] == [
        "here",
        "app",
        "application",
        60,
    ]
    assert list(series["methods"]) == list(document["overall"]) == methods.names()
    last = series["methods"]["last_value"]
    assert (last["n"], last["abstained"], last["mae_ratio"]) == (20, 0, 1.0)
    assert set(last) >= {
        "n", "mae", "rmse", "relative_error", "relative_error_variation", "mae_ratio", "coverage_80",
        "coverage_90", "winkler_80", "winkler_90", "ms_per_update",
    }  # fmt: skip
    assert series["methods"]["lrp"]["mae_ratio"] == pytest.approx(0.0, abs=1e-9)


def test_a_backtest_prints_a_table_for_each_series_and_one_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--method", "nws", "--method", "last_value", "--of", "all", "--warm-up", "10")
    out = printed(capsys, "backtest", *chosen, runs(tmp_path))
    assert "here app: 60 runs" in out
    assert "here ping: 60 runs" in out
    assert "All 2 series" in out
    assert [line.split()[0] for line in out.splitlines() if line.startswith(("nws", "last"))] == 3 * [
        "nws",
        "last_value",
    ]


def test_several_processes_compute_the_same_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("backtest", "--json", "--method", "nws", "--of", "all", runs(tmp_path))
    alone, shared = (json.loads(printed(capsys, *chosen, "--processes", number)) for number in "12")
    for output in (alone, shared):
        for figures in [
            *output["overall"].values(),
            *(series["methods"]["nws"] for series in output["series"]),
        ]:
            del figures["ms_per_update"]
    assert alone == shared


def test_a_file_without_an_application_is_refused_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = table(tmp_path, "group,series,kind,started_at,ended_at,value", "g,ping,probe,1,2,3")
    assert "expected a series of kind application (see --of), got none" in refused(capsys, "backtest", file)


def test_the_study_prints_seven_methods_beside_what_was_published_of_the_same_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(runs(tmp_path)).read_text(encoding="utf-8")
    header, *lines = text.splitlines()
    cells = [line.split(",") for line in lines]
    named = table(tmp_path, header, *(",".join([c[0], f"{c[1]}:total.seconds", *c[2:]]) for c in cells))
    out = printed(capsys, "study", named).splitlines()
    first = next(place for place, line in enumerate(out) if line.startswith("TSP"))
    here, published, difference = (line.split() for line in out[first : first + 3])
    assert published == ["published", "8.57", "(90.32)"]
    assert float(difference[1]) == pytest.approx(float(here[1]) - 8.57, abs=0.006)
    assert sum(line.startswith("  published") for line in out) == 2 + 7
    assert out[2].split() == ["published", "816.61"]
    document = json.loads(printed(capsys, "study", "--json", named))
    assert document["published"]["stage.queue_wait.seconds"]["cells"]["lrp"]["variation"] == 0.7425
    assert document["metrics"]["total.seconds"]["cells"]["nws"]["n"] == 50


def test_a_metric_that_was_not_published_stands_alone_in_the_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "study", runs(tmp_path)).splitlines()
    assert [line.split()[1:] for line in out if line.startswith("  published")] == [["-"]] * 9
    assert out[-1].startswith('A "-" stands for a figure that was not published')


def test_mean_and_deviation_of_a_fast_demo_are_printed_in_seconds_of_the_grid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = runs(tmp_path)
    measured, scaled = (
        [line.split() for line in printed(capsys, "study", *options, file).splitlines()]
        for options in ((), ("--scale=40",))
    )
    for label, place in (("Mean", 1), ("Std.", 4)):
        assert measured[place][0] == scaled[place][0] == label
        assert float(scaled[place][-1]) == pytest.approx(40 * float(measured[place][-1]), abs=0.3)
    assert scaled[7:-4] == measured[7:-3], "errors are relative"
    assert " ".join(scaled[-2]) == "Mean and standard deviation: measured values times 40."
    assert (
        json.loads(printed(capsys, "study", "--scale=40", "--json", file))["seconds_of_the_grid_per_second"]
        == 40
    )
    with pytest.raises(SystemExit):
        main(["study", "--scale=0", file])
    assert "--scale: expected a number above 0, got '0'" in capsys.readouterr().err


def test_the_study_scores_after_ten_runs_as_its_report_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["study", "--help"])
    assert "do not score the first N runs of a series (10)" in capsys.readouterr().out


def test_a_study_of_too_few_runs_names_the_number_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, "study", runs(tmp_path, 10))
    assert "no group has an application and a probe with more than 10 values each" in error


def test_the_program_ends_well_when_its_reader_has_seen_enough_and_with_2_when_it_cannot_write(
    tmp_path: Path,
) -> None:
    file = table(tmp_path, "time,value", *(f"{step},{step % 7}" for step in range(3000)))
    replay = [sys.executable, "-m", "forecasting", "replay", file]
    with subprocess.Popen(replay, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as left:
        assert left.stdout is not None
        assert left.stderr is not None
        assert left.stdout.readline().startswith(b"step,")
        left.stdout.close()
        assert left.stderr.read() == b""
    assert left.returncode == 0
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(replay, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        b"python -m forecasting replay: cannot write: No space left on device\n",
    )


@contextmanager
def judging(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a backtest in two processes: one has finished, the other is busy for long."""
    lines = ["group,series,kind,started_at,ended_at,value"]
    lines += [f"here,a,application,{at},{at + 1},{at % 7}" for at in range(0, 450, 10)]
    lines += [f"here,b,application,{at},{at + 1},{at % 7}" for at in range(0, 300_000, 10)]
    program = [sys.executable, "-m", "forecasting", "backtest", "--method", "blend", "--processes", "2"]
    with subprocess.Popen(
        [*program, table(directory, *lines)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # a shell that starts the tests in the background has them, and their children, ignore interrupts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"here a: 45 runs\n"
        yield running


def test_an_interrupt_is_reported_in_one_line_and_leaves_no_process(tmp_path: Path) -> None:
    with judging(tmp_path) as running:
        os.killpg(running.pid, signal.SIGINT)
        _, message = running.communicate(timeout=60)
    assert (running.returncode, message) == (130, b"python -m forecasting backtest: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)


def test_a_process_that_is_killed_ends_the_backtest_with_a_reason(tmp_path: Path) -> None:
    with judging(tmp_path) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii")
        os.kill(int(children.split()[0]), signal.SIGKILL)
        _, message = running.communicate(timeout=60)
    assert running.returncode == 2
    assert message.startswith(b"python -m forecasting backtest: a process that evaluated a series was killed")
    assert message.count(b"\n") == 1


def test_a_program_without_standard_output_reports_that_it_cannot_write(tmp_path: Path) -> None:
    closed = f"exec '{sys.executable}' -m forecasting replay '{table(tmp_path, 'time,value', '1,2')}' >&-"
    ended = subprocess.run(["sh", "-c", closed], cwd=ROOT, stderr=subprocess.PIPE, check=False)
    message = b"python -m forecasting replay: cannot write: standard output is closed\n"
    assert (ended.returncode, ended.stderr) == (2, message)


def test_a_name_with_ends_of_lines_makes_one_line_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such: cannot open it" in refused(capsys, "backtest", "no\nsuch")


def test_choose_tells_the_probe_and_the_method_that_an_application_is_forecast_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = runs(tmp_path)
    heading, *rows = printed(capsys, "choose", file).splitlines()
    assert heading.startswith("here app: lrp")
    assert heading.endswith("on ping")
    assert sum(row.endswith("used") for row in rows) == 1
    (document,) = json.loads(printed(capsys, "choose", "--json", "--quantile", "0.9", file)).values()
    assert {row["method"] for row in document} == set(choice.METHODS)
    assert all(row["helps"] == (row["gain"] > 0 and row["p_value"] <= 0.05) for row in document)


def test_choose_needs_a_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lonely = table(tmp_path, "group,series,kind,started_at,ended_at,value", "here,app,application,1,2,3")
    assert "no group has an application and a probe" in refused(capsys, "choose", lonely)
