"""Contract of every importer: stream items in order, and report malformed data by place."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.depot.series.segments import segment_status
from monitor.models import Run, Sample, Series
from monitor.models.run import State
from monitor.runs.imports import formats
from monitor.runs.imports.as_report import build_report, encode_report
from monitor.runs.imports.formats.base import (
    ImportedRun,
    InvalidOption,
    Item,
    MalformedRecord,
    SkippedRecord,
    UnknownImporter,
    Unreadable,
)
from monitor.runs.imports.run import ImportListener, ImportTally, import_history
from monitor.runs.imports.targets import Destination, Target
from reporters import report as wire

ROOT = Path(__file__).resolve().parents[2]
ImportData = Callable[..., ImportTally]

UNITS = {"seconds", "bytes", "bytes_per_second", "operations_per_second", "count", "ratio"}
PADDING = b"\n" * 600_000  # no content in any of these formats

every_kind = pytest.mark.parametrize("kind", formats.names())


def read(kind: str, data: bytes) -> list[Item]:
    return list(formats.create_importer(kind, formats.load(kind).example.options).read(io.BytesIO(data)))


def read_or_error(kind: str, data: bytes) -> tuple[list[Item], str]:
    """Return the items of *data*, or why it is unreadable."""
    try:
        return read(kind, data), ""
    except Unreadable as error:
        assert str(error)  # noqa: PT017
        return [], str(error)


def runs(kind: str) -> list[ImportedRun]:
    return [item for item in read(kind, formats.load(kind).example.data) if isinstance(item, ImportedRun)]


@pytest.fixture
def import_data() -> ImportData:
    """Import data of a kind; collect malformed records in ``refused``."""

    def run(
        kind: str, data: bytes, refused: list[MalformedRecord] | None = None, **options: Any
    ) -> ImportTally:
        importer = formats.create_importer(kind, formats.load(kind).example.options)
        listener = ImportListener((refused if refused is not None else []).append, lambda _: None)
        return import_history(importer, io.BytesIO(data), Target(kind, "x"), "a file", listener, **options)

    return run


@every_kind
def test_the_example_gives_runs_with_names_units_and_times(kind: str) -> None:
    imported = runs(kind)
    assert imported
    for run in imported:
        assert run.where
        assert run.slot.tzinfo is not None
        assert run.seconds >= 0
        assert {metric.unit for metric in run.metrics} <= UNITS
        assert all(math.isfinite(metric.value) for metric in run.metrics)
        assert run.metrics or run.stages


@every_kind
def test_every_run_becomes_a_valid_report(kind: str) -> None:
    for run in runs(kind):
        destination = Destination(Series(name="x"), {})
        report = build_report(run, wire.run_id("x", run.slot), destination, f"import-{kind}", run.where)
        assert wire.from_json(encode_report(report)) == wire.from_json(wire.to_json(report))


@every_kind
def test_runs_of_a_series_have_different_slots(kind: str) -> None:
    identities = [(run.series, run.slot) for run in runs(kind)]
    assert len(set(identities)) == len(identities)


@every_kind
def test_the_first_run_is_yielded_before_the_whole_file_is_read(kind: str) -> None:
    example = formats.load(kind).example
    stream = io.BytesIO(example.data + PADDING)
    imported = formats.create_importer(kind, example.options).read(stream)
    assert isinstance(next(imported), ImportedRun)
    assert stream.tell() < len(PADDING) / 4
    assert [item for item in imported if isinstance(item, MalformedRecord)] == []


@every_kind
def test_reading_twice_gives_the_same_items(kind: str) -> None:
    data = formats.load(kind).example.data
    importer = formats.create_importer(kind, formats.load(kind).example.options)
    assert list(importer.read(io.BytesIO(data))) == list(importer.read(io.BytesIO(data)))


@every_kind
@settings(derandomize=True, database=None)
@given(data=st.data())
def test_damaged_data_give_malformed_records_or_unreadable_and_no_other_error(
    kind: str, data: st.DataObject
) -> None:
    whole = formats.load(kind).example.data
    at = data.draw(st.integers(0, len(whole)))
    to = data.draw(st.integers(at, len(whole)))
    damage = data.draw(
        st.binary(max_size=12) | st.sampled_from([b"NaN", b"1e999", b"-1", b'"', b"[[", b"\x00", b"9" * 400])
    )
    items, _ = read_or_error(kind, whole[:at] + damage + whole[to:])
    for item in items:
        if isinstance(item, MalformedRecord):
            assert item.where
            assert item.field
            assert item.expected
        elif isinstance(item, ImportedRun):
            assert item.seconds >= 0
            assert all(math.isfinite(metric.value) for metric in item.metrics)


@every_kind
@pytest.mark.parametrize(
    "garbage",
    [
        b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40,
        b"<html><body>404</body></html>",
        b"[" * 70_000,
        b"\xff\xfe" * 600,
    ],
    ids=["program", "page", "brackets", "utf-16"],
)
def test_data_of_another_kind_give_no_run(kind: str, garbage: bytes) -> None:
    items, error_text = read_or_error(kind, garbage)
    assert items or "expected" in error_text or "no header" in error_text
    assert len(error_text) < 2000
    assert not [item for item in items if isinstance(item, ImportedRun | SkippedRecord)]
    assert all("expected" in str(item) for item in items)


@every_kind
def test_messages_about_garbage_contain_no_control_characters(kind: str) -> None:
    items, error_text = read_or_error(kind, b"\x1b]0;owned\x07\x1b[2J \x8e<\xd7,\x9b31m\n" * 3)
    assert items or error_text
    assert "".join([error_text, *map(str, items)]).isprintable()


@every_kind
def test_options_are_described_and_unknown_options_refused(kind: str) -> None:
    importer = formats.load(kind)
    assert importer.summary
    assert all(option.description for option in importer.options.values())
    with pytest.raises(InvalidOption, match=r"--colour: .* has no such option; its options are"):
        formats.create_importer(kind, {"colour": "red"})


@every_kind
def test_importing_twice_stores_once(db: None, kind: str, import_data: ImportData) -> None:
    data = formats.load(kind).example.data
    first = import_data(kind, data)
    stored = (Run.objects.count(), Sample.objects.count())
    again = import_data(kind, data)
    assert first.new == stored[0] == len(runs(kind))
    assert (again.new, again.known) == (0, first.new)
    assert (Run.objects.count(), Sample.objects.count()) == stored
    assert not Run.objects.exclude(state__in=[State.PASSED, State.FAILED]).exists()
    assert set(Run.objects.values_list("trigger", flat=True)) == {f"import: {kind} a file"}


@every_kind
def test_an_interrupted_import_can_be_repeated(db: None, kind: str, import_data: ImportData) -> None:
    data = formats.load(kind).example.data
    import_data(kind, data)
    half = Run.objects.order_by("slot")[: Run.objects.count() // 2].values("pk")
    Run.objects.exclude(pk__in=list(half.values_list("pk", flat=True))).delete()
    count = Run.objects.count()
    tally = import_data(kind, data)
    assert (tally.known, tally.new) == (count, len(runs(kind)) - count)


@every_kind
def test_the_configuration_of_an_imported_series_matches_its_last_segment(
    db: None, kind: str, import_data: ImportData
) -> None:
    import_data(kind, formats.load(kind).example.data)
    for series in Series.objects.all():
        status = segment_status(series)
        assert status.current == status.segments[-1]
        assert not status.is_changed


def test_an_unknown_kind_imports_no_module() -> None:
    for kind in ("rrd", "base", "text", "../csv", "os"):
        with pytest.raises(UnknownImporter, match=r"known are csv,.* elbencho, esmond"):
            formats.load(kind)


def test_importers_do_not_import_django() -> None:
    program = (
        "import sys; from monitor.runs.imports import formats;"
        " [formats.load(kind) for kind in formats.names()]; sys.exit('django' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
