"""What every importer owes: what it reads it reads once and in order, and what it cannot read it names."""

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

from monitor.imports import formats
from monitor.imports.as_report import report_of, written
from monitor.imports.formats.base import (
    InvalidOption,
    Item,
    LeftOut,
    Malformed,
    Measured,
    UnknownImporter,
    Unreadable,
)
from monitor.imports.run import Listener, Tally, import_history
from monitor.imports.targets import Destination, Target
from monitor.models import Run, Sample, Series
from monitor.models.run import State
from monitor.series.segments import segment_status
from reporters import report as wire

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"seconds", "bytes", "bytes_per_second", "count", "ratio"}
PADDING = b"\n" * 600_000  # nothing, in all of these formats

every_kind = pytest.mark.parametrize("kind", formats.names())


def read(kind: str, data: bytes) -> list[Item]:
    return list(formats.made(kind, formats.load(kind).example.options).read(io.BytesIO(data)))


def read_or_why_not(kind: str, data: bytes) -> tuple[list[Item], str]:
    """What could be read at all, or why nothing (more) of it could."""
    try:
        return read(kind, data), ""
    except Unreadable as error:
        assert str(error)  # noqa: PT017
        return [], str(error)


def runs(kind: str) -> list[Measured]:
    return [one for one in read(kind, formats.load(kind).example.data) if isinstance(one, Measured)]


@pytest.fixture
def bring() -> Callable[..., Tally]:
    """Import *data* as *kind*; what is malformed is collected in ``refused``."""

    def bring(kind: str, data: bytes, refused: list[Malformed] | None = None, **options: Any) -> Tally:
        importer = formats.made(kind, formats.load(kind).example.options)
        listener = Listener((refused if refused is not None else []).append, lambda _: None)
        return import_history(importer, io.BytesIO(data), Target(kind, "x"), "a file", listener, **options)

    return bring


@every_kind
def test_the_example_is_runs_with_names_units_and_times(kind: str) -> None:
    found = runs(kind)
    assert found
    for one in found:
        assert one.where
        assert one.slot.tzinfo is not None
        assert one.seconds >= 0
        assert {metric.unit for metric in one.metrics} <= UNITS
        assert all(math.isfinite(metric.value) for metric in one.metrics)
        assert one.metrics or one.stages


@every_kind
def test_every_run_is_a_report_that_any_reporter_could_have_sent(kind: str) -> None:
    for one in runs(kind):
        to = Destination(Series(name="x"), {})
        report = report_of(one, wire.run_id("x", one.slot), to, f"import-{kind}", one.where)
        assert wire.from_json(written(report)) == wire.from_json(wire.to_json(report))


@every_kind
def test_runs_of_a_series_have_different_slots(kind: str) -> None:
    identities = [(one.series, one.slot) for one in runs(kind)]
    assert len(set(identities)) == len(identities)


@every_kind
def test_the_first_run_is_there_before_all_has_been_read(kind: str) -> None:
    example = formats.load(kind).example
    stream = io.BytesIO(example.data + PADDING)
    found = formats.made(kind, example.options).read(stream)
    assert isinstance(next(found), Measured)
    assert stream.tell() < len(PADDING) / 4
    assert [item for item in found if isinstance(item, Malformed)] == []


@every_kind
def test_reading_again_gives_the_same(kind: str) -> None:
    data = formats.load(kind).example.data
    importer = formats.made(kind, formats.load(kind).example.options)
    assert list(importer.read(io.BytesIO(data))) == list(importer.read(io.BytesIO(data)))


@every_kind
@settings(max_examples=60, derandomize=True, database=None)
@given(data=st.data())
def test_damaged_data_are_named_and_nothing_else_escapes(kind: str, data: st.DataObject) -> None:
    whole = formats.load(kind).example.data
    at = data.draw(st.integers(0, len(whole)))
    to = data.draw(st.integers(at, len(whole)))
    damage = data.draw(
        st.binary(max_size=12) | st.sampled_from([b"NaN", b"1e999", b"-1", b'"', b"[[", b"\x00", b"9" * 400])
    )
    items, _ = read_or_why_not(kind, whole[:at] + damage + whole[to:])
    for item in items:
        if isinstance(item, Malformed):
            assert item.where
            assert item.field
            assert item.expected
        elif isinstance(item, Measured):
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
def test_what_is_something_else_gives_no_run(kind: str, garbage: bytes) -> None:
    items, why_not = read_or_why_not(kind, garbage)
    assert items or "expected" in why_not or "no header" in why_not
    assert len(why_not) < 2000
    assert not [item for item in items if isinstance(item, Measured | LeftOut)]
    assert all("expected" in str(item) for item in items)


@every_kind
def test_what_is_said_of_rubbish_does_nothing_to_a_terminal(kind: str) -> None:
    items, why_not = read_or_why_not(kind, b"\x1b]0;owned\x07\x1b[2J \x8e<\xd7,\x9b31m\n" * 3)
    assert items or why_not
    assert "".join([why_not, *map(str, items)]).isprintable()


@every_kind
def test_options_are_described_and_others_are_refused(kind: str) -> None:
    importer = formats.load(kind)
    assert importer.summary
    assert all(option.description for option in importer.options.values())
    with pytest.raises(InvalidOption, match=r"--colour: .* has no such option; known are"):
        formats.made(kind, {"colour": "red"})


@every_kind
def test_importing_twice_stores_once(db: None, kind: str, bring: Callable[..., Tally]) -> None:
    data = formats.load(kind).example.data
    first = bring(kind, data)
    stored = (Run.objects.count(), Sample.objects.count())
    again = bring(kind, data)
    assert first.new == stored[0] == len(runs(kind))
    assert (again.new, again.known) == (0, first.new)
    assert (Run.objects.count(), Sample.objects.count()) == stored
    assert not Run.objects.exclude(state__in=[State.PASSED, State.FAILED]).exists()
    assert set(Run.objects.values_list("trigger", flat=True)) == {f"import: {kind} a file"}


@every_kind
def test_what_was_interrupted_is_gone_on_with(db: None, kind: str, bring: Callable[..., Tally]) -> None:
    data = formats.load(kind).example.data
    bring(kind, data)
    half = Run.objects.order_by("slot")[: Run.objects.count() // 2].values("pk")
    Run.objects.exclude(pk__in=list(half.values_list("pk", flat=True))).delete()
    kept = Run.objects.count()
    tally = bring(kind, data)
    assert (tally.known, tally.new) == (kept, len(runs(kind)) - kept)


@every_kind
def test_the_next_run_of_an_imported_series_belongs_to_its_segment(
    db: None, kind: str, bring: Callable[..., Tally]
) -> None:
    bring(kind, formats.load(kind).example.data)
    for series in Series.objects.all():
        stands = segment_status(series)
        assert stands.current == stands.segments[-1]
        assert not stands.is_changed


def test_a_kind_that_there_is_not_imports_nothing() -> None:
    for kind in ("rrd", "base", "text", "../csv", "os"):
        with pytest.raises(UnknownImporter, match="known are csv, esmond, inca"):
            formats.load(kind)


def test_importers_know_no_django() -> None:
    program = (
        "import sys; from monitor.imports import formats; [formats.load(kind) for kind in formats.names()];"
        " sys.exit('django' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
