"""Measurements of perfSONAR: rates in bytes, delays in seconds, losses in packets."""

from __future__ import annotations

import gzip
import json
import math
from typing import Any

import pytest

from monitor.runs.imports.formats.base import InvalidOption, Unreadable
from tests.monitor.runs.imports.formats.reading import (
    DATA,
    SHARED,
    metrics,
    needs_shared_data,
    read,
    read_shared,
    refused,
    runs,
    skipped,
)

DELAYS = (DATA / "esmond.json").read_text()


def test_a_histogram_gives_extremes_mean_and_quantiles() -> None:
    (run,) = runs(read("esmond", DELAYS, event_type="histogram-owdelay"))
    assert (run.slot.timestamp(), run.seconds) == (1391548750.0, 60.0)
    assert metrics(run) == {
        "one_way_delay.min.seconds": (0.0015, "seconds"),
        "one_way_delay.mean.seconds": (pytest.approx((1.5 + 32 + 120) / 20 / 1000), "seconds"),
        "one_way_delay.median.seconds": (0.002, "seconds"),
        "one_way_delay.p95.seconds": (0.04, "seconds"),
        "one_way_delay.max.seconds": (0.04, "seconds"),
        "packets.received": (20.0, "count"),
    }


def test_empty_and_undated_items_are_malformed_and_invalid_ones_skipped() -> None:
    items = read("esmond", DELAYS, event_type="histogram_owdelay", bucket_seconds="1")
    assert refused(items) == [
        "item 2: val: expected an object of 1 to 100000 buckets, got '{}'",
        "item 4: ts: expected a number, got 'None'",
    ]
    assert skipped(items) == ["the archive marks it as invalid"]


def test_the_event_type_is_required_if_the_data_do_not_name_it() -> None:
    assert refused(read("esmond", '[{"ts": 1, "val": 1}]')) == [
        "item 1: path: expected an event type, or the option --event-type, got 'None'"
    ]
    with pytest.raises(InvalidOption, match="--event-type: expected one of histogram-owdelay"):
        read("esmond", "[]", event_type="weather")


@pytest.mark.parametrize(
    ("val", "value"),
    [
        (0.25, 0.25),
        ({"numerator": 3, "denominator": 12}, 0.25),
        ({"numerator": 3, "denominator": 0}, None),
    ],
)
def test_a_loss_rate_is_a_ratio(val: Any, value: float | None) -> None:
    imported = runs(read("esmond", json.dumps([{"ts": 1, "val": val}]), event_type="packet-loss-rate"))
    assert [metrics(run)["packets.lost"] for run in imported] == ([] if value is None else [(value, "ratio")])


def test_a_truncated_document_is_unreadable_after_its_last_item() -> None:
    with pytest.raises(Unreadable, match="truncated"):
        read("esmond", DELAYS[:150], event_type="histogram-owdelay")


def raw(name: str) -> list[dict[str, Any]]:
    with gzip.open(SHARED / name) as stream:
        imported: list[dict[str, Any]] = json.load(stream)
    return imported


@needs_shared_data
def test_a_hundred_days_of_throughput_are_one_series_in_bytes_per_second() -> None:
    name = "perfsonar-esmond/throughput_data.json.gz"
    imported = runs(read_shared("esmond", name))
    assert {run.series for run in imported} == {"throughput-ec7e5af6"}
    assert [run.slot.timestamp() * 1000 for run in imported] == [item["ts"] for item in raw(name)]
    total = math.fsum(metrics(run)["throughput.bytes_per_second"][0] for run in imported)
    assert total == pytest.approx(sum(item["val"] for item in raw(name)) / 8)
    assert (len(imported), imported[-1].slot - imported[0].slot) == (
        600,
        599 * (imported[1].slot - imported[0].slot),
    )


@needs_shared_data
def test_a_day_of_delays_has_the_median_of_every_minute() -> None:
    name = "perfsonar-esmond/histogram_owdelay_minute_data.json.gz"
    imported = runs(read_shared("esmond", name))
    assert len(imported) == 1440
    for run, item in list(zip(imported, raw(name), strict=True))[::60]:
        packets = sorted(int(bucket) for bucket, count in item["val"].items() for _ in range(count))
        assert metrics(run)["packets.received"] == (600.0, "count")
        assert metrics(run)["one_way_delay.median.seconds"][0] == pytest.approx(packets[299] / 1000)
        assert metrics(run)["one_way_delay.p95.seconds"][0] == pytest.approx(packets[569] / 1000)


@needs_shared_data
@pytest.mark.parametrize("what", ["lost", "sent"])
def test_a_day_of_packet_counts_is_read(what: str) -> None:
    name = f"perfsonar-esmond/packet_count_{what}_data.json.gz"
    imported = runs(read_shared("esmond", name))
    assert sum(metrics(run)[f"packets.{what}"][0] for run in imported) == sum(
        item["val"] for item in raw(name)
    )
