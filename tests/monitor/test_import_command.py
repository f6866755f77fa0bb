"""``manage.py import``: output, stored runs and errors."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.refresh import refresh_all
from monitor.depot.samples.read import history
from monitor.depot.series.segments import segment_status
from monitor.models import ForecastPredictor, Metric, Run, Sample, Segment, Series, Site
from monitor.models.run import State
from monitor.operations.gridfile import depot, exporting, loading
from monitor.runs.imports import formats
from monitor.runs.imports.run import BATCH, ImportListener, import_history
from monitor.runs.imports.targets import Target
from monitor.runs.ledger.holds import InvalidRequest
from monitor.runs.ledger.run_now import run_now
from tests.by_night import by_night
from tests.monitor.runs.imports.formats.reading import (
    AZURE,
    LANL,
    MACHINES,
    OUTAGES,
    SHARED,
    lines_of,
    member,
    needs_shared_data,
)

ROOT = Path(__file__).resolve().parents[2]
PROGRESS = re.compile(r"^  .* runs/s\n", re.MULTILINE)
LINES = [f"{1141214400 + 60 * minute} {8 + minute % 3}" for minute in range(40)]


@pytest.fixture
def values(tmp_path: Path) -> Callable[..., str]:
    """Write a file of *lines*; return its path."""

    def values(lines: list[str] = LINES, *, name: str = "bandwidth.nws") -> str:
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return str(tmp_path / name)

    return values


def run_import(*argv: str) -> tuple[str, str]:
    """Run the command; return stdout and stderr, with the error it exits with and without progress lines."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("import", *argv, stdout=out, stderr=err)
    except CommandError as error:
        err.write(f"exits: {error}\n")
    return out.getvalue(), PROGRESS.sub("", err.getvalue())


def imported_output(file: str, *argv: str) -> str:
    out, err = run_import("nws", file, "--series=bw", "--resource=bandwidthTcp", *argv)
    assert not err
    return out


def test_a_file_becomes_runs_of_a_disabled_series(db: None, values: Callable[..., str]) -> None:
    assert "bandwidth.nws: 40 new, 0 known, 0 malformed, 1 series in" in imported_output(
        values(), "--site=here"
    )
    series = Series.objects.get()
    assert (series.name, series.suite.name, series.enabled, series.schedule) == ("bw", "imported", False, "")
    assert [binding.resource.site.name for binding in series.bindings.all()] == ["here"]
    assert set(Run.objects.values_list("state", flat=True)) == {State.PASSED}
    (metric,) = Metric.objects.all()
    assert (metric.name, metric.unit) == ("bandwidth", "bytes_per_second")
    points = history(metric)
    assert [point.value for point in points[:3]] == [1e6, 9e6 / 8, 1e7 / 8]
    assert points[0].time == points[0].known_at == datetime(2006, 3, 1, 12, tzinfo=UTC)


def test_stored_runs_count_as_known_and_older_runs_extend_the_segment(
    db: None, values: Callable[..., str]
) -> None:
    imported_output(values(LINES[20:], name="later.nws"))
    assert "20 new, 20 known" in imported_output(values())
    assert "0 new, 40 known" in imported_output(values())
    assert Segment.objects.get().began_at == datetime(2006, 3, 1, 12, tzinfo=UTC)


def test_imported_values_can_be_forecast(db: None, values: Callable[..., str]) -> None:
    imported_output(values())
    forecast = issue(Metric.objects.get(), datetime(2026, 3, 1, tzinfo=UTC))
    assert 1e6 <= forecast.mean <= 1.25e6
    assert forecast.n == 40


@pytest.mark.parametrize(("measures", "predictor_series"), [("application", ["bw"]), ("grid", [])])
def test_an_imported_application_uses_probes_at_its_resource_as_predictors(
    db: None, values: Callable[..., str], measures: str, predictor_series: list[str]
) -> None:
    imported_output(values(), "--site=here")
    imported_output(values(name="jobs.nws"), "--site=here", "--series=app", f"--as={measures}")
    app = Metric.objects.get(segment__series__name="app")
    assert app.segment.series.kind == measures
    issue(app, datetime(2026, 3, 1, tzinfo=UTC))
    refresh_all(datetime(2026, 3, 1, tzinfo=UTC))
    predictors = ForecastPredictor.objects.filter(metric=app)
    assert list(predictors.values_list("series__name", flat=True)) == predictor_series


def test_malformed_lines_are_reported_and_all_others_imported(db: None, values: Callable[..., str]) -> None:
    file = values([*LINES[:2], "soon 5", *LINES[2:], *(f"x{number} 1" for number in range(30))])
    out, err = run_import("nws", file, "--series=bw")
    assert "40 new, 0 known, 31 malformed" in out
    assert f"{file}: line 3: time: expected a time in seconds since 1970" in err
    assert err.count("expected a time") == 20
    assert "... further malformed records are only counted\n" in err
    assert err.endswith(f"exits: {file}: 31 malformed records; 40 runs are imported\n")


def test_a_dry_run_with_malformed_lines_reports_that_nothing_is_imported(
    db: None, values: Callable[..., str]
) -> None:
    _, err = run_import("nws", values([*LINES, "soon 5"]), "--series=bw", "--dry-run")
    assert err.endswith("1 malformed records; nothing is imported\n")


TOO_LATE = "4102444800 8"  # 2100


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (["soon 5"], "time: expected a time in seconds since 1970"),
        ([f"{LINES[0]}1"], "time: expected a time that no other run of its series in this file has"),
        ([TOO_LATE], "time: expected a run that has ended by now"),
        ([f"{LINES[0]}1", "soon 5"], "time: expected a time that no other run"),
    ],
)
def test_strict_stops_at_the_first_refused_line(
    db: None, values: Callable[..., str], refused: list[str], why: str
) -> None:
    file = values([*LINES[:2], *refused, *LINES[2:]])
    _, err = run_import("nws", file, "--series=bw", "--strict")
    assert err.startswith(f"exits: {file}: stopped at line 3: {why}")
    assert err.endswith("; the 2 runs before are imported\n")
    assert Run.objects.count() == 2


def test_a_strict_dry_run_stops_at_the_first_refused_line(db: None, values: Callable[..., str]) -> None:
    _, err = run_import("nws", values([*LINES[:2], TOO_LATE]), "--series=bw", "--strict", "--dry-run")
    assert "stopped at line 3: time: expected a run that has ended by now" in err
    assert err.endswith("; nothing is imported\n")


def test_strict_stops_at_a_run_that_the_depot_refuses(db: None, values: Callable[..., str]) -> None:
    """The depot refuses a report that is too large, but no other report of its batch."""
    large = "x" * 100_000
    rows = [f"{60 * minute},1,{why},{why},{why}" for minute, why in enumerate(["", "", large, ""])]
    file = values(["time,value,a,b,c", *rows], name="rows.csv")
    argv = ("csv", file, "--series=rows", "--reason-columns=a,b,c")
    _, err = run_import(*argv, "--strict")
    assert "stopped at line 4: run: expected a run that the depot can store" in err
    assert sorted(run.slot.minute for run in Run.objects.all()) == [0, 1]
    assert "1 new, 2 known, 1 malformed" in run_import(*argv)[0]


def test_a_run_that_is_twice_in_its_file_is_stored_once_without_an_error(
    db: None, values: Callable[..., str]
) -> None:
    assert "40 new, 1 known, 0 malformed" in imported_output(values([*LINES, LINES[0]]))


def test_a_run_that_differs_from_the_stored_one_is_counted_and_not_stored(
    db: None, values: Callable[..., str]
) -> None:
    imported_output(values())
    out = imported_output(values([f"{LINES[0]}1", *LINES[1:]]))
    assert "0 new, 40 known (1 differ from the stored runs, which stay), 0 malformed" in out
    assert history(Metric.objects.get())[0].value == 1e6


def test_a_time_in_the_future_creates_neither_runs_nor_series(db: None, values: Callable[..., str]) -> None:
    _, err = run_import("nws", values([TOO_LATE]), "--series=bw")
    assert "line 1: time: expected a run that has ended by now, got '2100-01-01T00:00:00" in err
    assert not Series.objects.exists()


def test_a_name_conflict_is_reported_with_its_line_and_the_runs_before_are_stored(
    circle: Series, values: Callable[..., str]
) -> None:
    circle.name = "vm-b"
    circle.save()
    file = values(["time,vm,value", *(f"{at},{vm},1" for at, vm in enumerate("aabaa"))], name="vm.csv")
    argv = ("csv", file, "--series=vm", "--series-column=vm")
    conflict = "the series vm-b exists already with the probe circle: choose another"
    assert f"exits: {conflict}" in run_import(*argv, "--dry-run")[1]
    assert f"exits: line 4: {conflict}" in run_import(*argv)[1]
    assert Run.objects.filter(series__name="vm-a").count() == 2


def test_a_name_that_is_too_long_refuses_only_its_row(db: None, values: Callable[..., str]) -> None:
    file = values(["time,vm,value", "0,a,1", f"1,{'b' * 50},1"], name="vm.csv")
    out, err = run_import("csv", file, f"--series={'x' * 60}", "--series-column=vm")
    assert "1 new, 0 known, 1 malformed" in out
    assert "line 3: series: expected a name of at most 100 characters, including --series" in err


def test_a_series_that_the_depot_cannot_store_refuses_only_its_row(
    db: None, values: Callable[..., str]
) -> None:
    file = values(["time,vm,value", "0,a,1", "1,a\0,1", "2,b,1"], name="vm.csv")
    out, err = run_import("csv", file, "--series=vm", "--series-column=vm")
    assert "2 new, 0 known, 1 malformed" in out
    assert "line 3: run: expected a run that the depot can store, got 'unsupported Unicode" in err


def test_a_file_may_have_any_name(db: None, values: Callable[..., str], tmp_path: Path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/\xff\x1b[2J")
    Path(values()).rename(name)
    assert "\\xff\\x1b[2J: 40 new" in imported_output(name)


def test_a_closed_standard_input_is_reported(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in run_import("nws", "-", "--series=x")[1]


def test_a_truncated_file_is_imported_up_to_its_end(db: None, values: Callable[..., str]) -> None:
    padding = (f"# {random.Random(line).randbytes(2000).hex()}" for line in LINES)
    file = Path(values([line for pair in zip(LINES, padding, strict=True) for line in pair]))
    packed = file.with_suffix(".gz")
    packed.write_bytes(gzip.compress(file.read_bytes())[:-9])
    _, err = run_import("nws", str(packed), "--series=bw")
    count = Run.objects.count()
    assert count > 10
    assert err.endswith(
        f"the compressed data are damaged or truncated: Compressed file ended before the "
        f"end-of-stream marker was reached; the {count:,} runs before are imported\n"
    )


@pytest.mark.parametrize("apart", [0, 1200])
def test_of_two_values_of_the_same_time_only_one_is_stored(
    db: None, values: Callable[..., str], apart: int
) -> None:
    between = [f"{1241214400 + second} 1" for second in range(apart)]
    out, err = run_import("nws", values([LINES[0], *between, f"{LINES[0]}1"]), "--series=bw")
    assert f"{1 + apart:,} new, 0 known, 1 malformed" in out
    assert "time: expected a time that no other run of its series in this file has" in err


def test_a_dry_run_shows_the_result_and_creates_nothing(db: None, values: Callable[..., str]) -> None:
    out = imported_output(values(), "--dry-run")
    assert out.splitlines()[:2] == [
        "bw: 40 passed, 2006-03-01 12:00:00 to 2006-03-01 12:39:00 UTC",
        "    bandwidth [bytes_per_second]",
    ]
    assert "40 runs, none stored" in out
    assert not Series.objects.exists()
    assert not Site.objects.exists()


def test_compressed_files_are_read(db: None, values: Callable[..., str]) -> None:
    packed = Path(values()).with_suffix(".gz")
    packed.write_bytes(gzip.compress(Path(values()).read_bytes()))
    assert "40 new" in imported_output(str(packed))


def test_an_error_is_reported_in_one_line(db: None, values: Callable[..., str], circle: Series) -> None:
    file = values()
    for argv, why in {
        ("nws", "/nonexistent", "--series=x"): "/nonexistent: No such file or directory",
        ("nws", str(Path(file).parent), "--series=x"): "Is a directory",
        ("nws", values([], name="empty"), "--series=x"): "empty: the file is empty",
        ("nws", file, "--series=a b"): "--series: expected letters, digits, - and _, got 'a b'",
        ("nws", file, "--series=" + "x" * 101): "--series: expected at most 100 characters, got 101",
        ("nws", file, "--series=circle"): "the series circle exists already with the probe circle",
        ("nws", file, "--series=x", "--site=no/where"): "--site: expected letters",
        ("csv", file, "--series=x"): "line 1: expected a column 'time'",
        ("swf", file, "--series=x"): "line 1: a job, but no header '; UnixStartTime:'",
        ("csv", file, "--series=x", "--units=s,s"): "--units: expected 1 unit or 1 units, got 2",
    }.items():
        out, err = run_import(*argv)
        assert why in err, (argv, err)
        assert not out
    assert list(Series.objects.all()) == [circle]


def test_an_existing_resource_is_used_if_it_is_at_the_named_site(
    circle: Series, values: Callable[..., str]
) -> None:
    up = {"metric": {"host": "here"}, "values": [[1772366400, "1"]]}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [up]}}
    file = values([json.dumps(answer)], name="range.json")
    argv = ("prometheus", file, "--series=up", "--resource-label=host")
    assert (
        "the resource here belongs to the site site-of-here, not to elsewhere"
        in run_import(*argv, "--site=elsewhere")[1]
    )
    assert "1 new" in run_import(*argv)[0]
    bound = Series.objects.get(probe="import-prometheus").bindings.get()
    assert bound.resource == circle.bindings.get(position=0).resource


def test_the_newest_runs_determine_the_parameters_of_a_series_that_changed(
    db: None, values: Callable[..., str]
) -> None:
    file = values([REPORT.format(hour=hour, version=hour // 2) for hour in (3, 2)], name="new.xml")
    older = values([REPORT.format(hour=hour, version=hour // 2) for hour in (0, 1)], name="old.xml")
    for path in (file, older):
        assert "2 new" in run_import("inca", path, "--series=inca")[0]
    status = segment_status(Series.objects.get())
    assert [segment.parameters["version"] for segment in status.segments] == ["0", "1"]
    assert status.current == status.segments[-1]
    assert not status.is_changed


REPORT = (
    "<report><gmt>2006-03-01T0{hour}:00:00Z</gmt><hostname>h</hostname><name>n</name><version>{version}</version>"
    "<body><statistic><ID>t</ID><value>1</value><units>s</units></statistic></body>"
    "<exitStatus><completed>true</completed></exitStatus></report>"
)


def test_pages_of_an_imported_series_offer_no_run_now(
    db: None, values: Callable[..., str], client: Client
) -> None:
    imported_output(values(), "--site=here")
    client.force_login(User.objects.create_superuser("ada"))
    page = client.get("/series/bw/").content.decode()
    assert "Imported history" in page
    assert "Run now" not in page
    run = client.get(f"/runs/{Run.objects.latest('slot').pk}/").content.decode()
    assert "import: nws" in run
    assert "bandwidth" in run
    with pytest.raises(InvalidRequest, match="bw was imported: no reporter can run it"):
        run_now(Series.objects.get(), who="ada")


def test_a_grid_with_imported_series_survives_export_and_parsing(
    db: None, values: Callable[..., str]
) -> None:
    imported_output(values(), "--site=here")
    text = exporting.to_yaml(depot.read())
    assert depot.read() == loading.parse(text.encode(), "exported", depot.names())


class InterruptedFile(io.BytesIO):
    """Interrupts its reader in the middle, as a signal does."""

    def readline(self, size: int | None = -1) -> bytes:
        if self.tell() > len(self.getvalue()) / 2:
            raise KeyboardInterrupt
        return super().readline(size)


def test_an_interrupted_import_can_be_repeated(db: None) -> None:
    data = "".join(f"{1141214400 + second} 1\n" for second in range(2 * BATCH + 100)).encode()
    importer, listener = formats.create_importer("nws", {}), ImportListener(lambda _: None, lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        import_history(importer, InterruptedFile(data), Target("nws", "x"), "values", listener)
    assert Run.objects.count() == BATCH
    assert not Run.objects.pending().exists()
    tally = import_history(importer, io.BytesIO(data), Target("nws", "x"), "values", listener)
    assert (tally.known, tally.new) == (BATCH, BATCH + 100)
    with connection.cursor() as cursor:  # an import of this size runs ANALYZE
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'monitor_run'")
        assert cursor.fetchone() == (2 * BATCH + 100,)


@needs_shared_data
def test_the_start_of_a_real_log_is_stored_with_its_figures(db: None, values: Callable[..., str]) -> None:
    name = "swf-pwa/HPC2N-2002-2.2-cln.swf.gz"
    lines = [line.rstrip("\n") for line in lines_of(name, most=825)]
    jobs = [line.split() for line in lines if not line.startswith(";")]
    out, err = run_import("swf", values(lines), "--series=hpc2n", "--site=hpc2n")
    assert not err
    assert f"{2 * len(jobs):,} new" in out
    for series, column in (("hpc2n-wait", 2), ("hpc2n-run", 3)):
        (metric,) = Metric.objects.filter(segment__series__name=series, name="total.seconds")
        stored = [sample.value for sample in Sample.objects.filter(metric=metric)]
        assert sum(stored) == sum(float(fields[column]) for fields in jobs)
        assert median(stored) == median(float(fields[column]) for fields in jobs)


@needs_shared_data
@pytest.mark.parametrize(
    ("argv", "runs", "series"),
    [
        (("esmond", "perfsonar-esmond/throughput_data.json.gz"), 600, 1),
        by_night(("esmond", "perfsonar-esmond/histogram_owdelay_minute_data.json.gz"), 1440, 1),
        by_night(("esmond", "perfsonar-esmond/packet_count_lost_data.json.gz"), 1440, 1),
        by_night(("esmond", "perfsonar-esmond/packet_count_sent_data.json.gz"), 1440, 1),
        by_night(("tokio", "tokio-abc/mira-summaries_2017-02-14_2018-02-15.csv.gz"), 2533, 8),
        by_night(("csv", "nws-golden/nws-2.0.5-oracle.csv.gz", "--series-column=case"), 3011, 8),
        by_night(("csv", "nws-golden/bmbp_ts-oracle.csv.gz", "--series-column=case", "--units=s"), 4600, 4),
    ],
)
def test_real_files_are_imported_cleanly(db: None, argv: tuple[str, ...], runs: int, series: int) -> None:
    kind, name, *options = argv
    out, err = run_import(kind, str(SHARED / name), "--series=real", *options)
    assert "exits" not in err
    assert f"{runs:,} new, 0 known, 0 malformed, {series} series" in out
    assert Run.objects.count() == runs


def flags(options: Mapping[str, str]) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


@needs_shared_data
def test_outages_are_imported_with_their_reasons(db: None, values: Callable[..., str]) -> None:
    file = values([line.rstrip("\n") for line in lines_of(LANL, most=601)], name="outages.csv")
    out, err = run_import("csv", file, "--series=lanl", "--site=lanl", *flags(OUTAGES))
    assert not err
    assert "600 new, 0 known, 0 malformed, 3 series" in out
    first = Run.objects.get(series__name="lanl-2-0", slot__year=2005, slot__month=6)
    assert (first.state, first.reason) == (State.FAILED, "Hardware: Graphics Accel Hdwr")
    assert first.slot.replace(microsecond=0) == datetime(2005, 6, 21, 16, 54, tzinfo=UTC)
    assert first.seconds == 360.0


@needs_shared_data
def test_benchmarks_of_cloud_machines_are_imported(db: None, values: Callable[..., str]) -> None:
    name = "vm-noise-data/test_suite=Sysbench/test_name=Test:_RAM__Memory/"
    lines = member(AZURE, name, "B8ms/").decode().splitlines()[:1001]
    out, err = run_import("csv", values(lines), "--series=ram", "--units=MiB/s", *flags(MACHINES))
    assert not err
    assert "1,000 new, 0 known, 0 malformed" in out
    assert Metric.objects.filter(name="value").values_list("unit", flat=True)[0] == "bytes_per_second"
