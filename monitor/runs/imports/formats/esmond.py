"""perfSONAR: JSON of its measurement archive esmond (docs.perfsonar.net, "Measurement Archive REST API").

The file is an array of ``{"ts": time, "val": value}`` as the API returns it or, with ``path``, as esmond
stores it. Times are seconds since 1970 in the API and milliseconds in the store: a number that would be later
than the year 5000 counts as milliseconds. Throughput is converted from bits to bytes per second.

A histogram counts packets by delay, in buckets of milliseconds. Its minimum, maximum, mean and quantiles are
imported; a quantile is the bucket of the packet of that rank. A count or a histogram covers a window of time
and becomes known at the end of the window. A throughput test does not give its duration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from monitor.runs.imports.formats import text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    InvalidOption,
    Item,
    Option,
    SkippedRecord,
    time_at,
)
from monitor.runs.imports.formats.documents import Document, number
from probes.base import Measurement, Value

_MILLISECONDS_FROM = 1e11
_KEY_CHARACTERS = 8  # of a metadata key, in the name of a series
_MOST_BUCKETS = 100_000
_BITS = 8


class Importer:
    summary = "perfSONAR/esmond JSON: throughput, delays, losses; one series per measurement and event type."
    measures = "grid"
    options = {
        "event_type": Option("event type, if the data do not name it: throughput, ...", metavar="TYPE"),
        "window_seconds": Option("window of each count or histogram", "60", "SECONDS"),
        "bucket_seconds": Option("unit of the buckets of a histogram", "0.001", "SECONDS"),
    }
    example = Example(
        b'[{"path": ["ps", "throughput", "EC7E5AF67F8746C8"], "ts": 1382995070000, "val": 7283024174},\n'
        b' {"path": ["ps", "histogram_owdelay", "0CB19291FB6D40EA"], "ts": 1391548750000,\n'
        b'  "val": {"40": 2, "64": 3}}]\n'
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.event_type = _event_type(options["event_type"])
        if self.event_type and self.event_type not in _METRICS:
            raise InvalidOption(f"expected one of {', '.join(sorted(_METRICS))}", "event_type")
        try:
            self.window_seconds = text.seconds("window_seconds", options["window_seconds"])
            self.bucket_seconds = text.seconds("bucket_seconds", options["bucket_seconds"])
        except InvalidField as error:
            raise InvalidOption(f"expected {error.expected}, got {error.got!r}", error.field) from None

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        document = Document(stream)
        for place, first in enumerate(document.elements("of measurements"), start=1):
            where, value = f"item {place}", document.value(first)
            try:
                yield self._item(where, value)
            except InvalidField as error:
                yield error.at(where)

    def _item(self, where: str, value: Any) -> ImportedRun | SkippedRecord:
        if not isinstance(value, dict):
            raise InvalidField("item", "an object with ts and val", value)
        if value.get("is_valid", 1) == 0:
            return SkippedRecord(where, "the archive marks it as invalid")
        event_type, key = self._measurement(value.get("path"))
        at = number("ts", value.get("ts"))
        slot = time_at("ts", at / 1000 if at >= _MILLISECONDS_FROM else at)
        if event_type not in _METRICS:
            raise InvalidField("path", f"one of {', '.join(sorted(_METRICS))}", event_type)
        metrics = _METRICS[event_type](value.get("val"), self.bucket_seconds)
        parameters: dict[str, Value] = {"event_type": event_type, **({"metadata_key": key} if key else {})}
        name = "-".join(
            part
            for part in (event_type, text.slug(key[:_KEY_CHARACTERS].lower())[:30] if key else "")
            if part
        )
        window = 0.0 if event_type == "throughput" else self.window_seconds
        return ImportedRun(where, slot, window, metrics, series=name, parameters=parameters)

    def _measurement(self, path: object) -> tuple[str, str]:
        """Return the event type and the metadata key of the measurement."""
        if path is None:
            if not self.event_type:
                raise InvalidField("path", "an event type, or the option --event-type", path)
            return self.event_type, ""
        if not isinstance(path, list) or len(path) < 3 or not all(isinstance(part, str) for part in path):
            raise InvalidField("path", 'an array such as ["ps", "throughput", key]', path)
        return _event_type(path[1]), "-".join(path[2:])


def _event_type(name: str) -> str:
    """Return the API's spelling of *name*; the store has ``_`` for ``-``."""
    return name.replace("_", "-")


def _throughput(value: object, _bucket: float) -> list[Measurement]:
    return [
        Measurement("throughput.bytes_per_second", _non_negative("val", value) / _BITS, "bytes_per_second")
    ]


def _counted(name: str) -> Callable[[object, float], list[Measurement]]:
    return lambda value, _bucket: [Measurement(name, _non_negative("val", value), "count")]


def _loss_rate(value: object, _bucket: float) -> list[Measurement]:
    """Read a rate, which is a number in the API and a fraction in the store."""
    if isinstance(value, dict):
        lost = number("val.numerator", value.get("numerator"))
        sent = number("val.denominator", value.get("denominator"))
        if not 0 <= lost <= sent or not sent:
            raise InvalidField("val", "0 <= numerator <= denominator, and a positive denominator", value)
        value = lost / sent
    return [Measurement("packets.lost", _non_negative("val", value), "ratio")]


def _delays(prefix: str) -> Callable[[object, float], list[Measurement]]:
    def metrics(value: object, bucket_seconds: float) -> list[Measurement]:
        counts = _histogram(value)
        packets = sum(counts.values())
        mean = math.fsum(delay * count for delay, count in counts.items()) / packets
        statistics = {
            "min": min(counts),
            "mean": mean,
            "median": _quantile(counts, 0.5 * packets),
            "p95": _quantile(counts, 0.95 * packets),
            "max": max(counts),
        }
        seconds = [
            Measurement(f"{prefix}.{name}.seconds", buckets * bucket_seconds, "seconds")
            for name, buckets in statistics.items()
        ]
        return [*seconds, Measurement("packets.received", packets, "count")]

    return metrics


def _histogram(value: object) -> dict[float, float]:
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_BUCKETS:
        raise InvalidField("val", f"an object of 1 to {_MOST_BUCKETS} buckets", value)
    counts: dict[float, float] = {}
    for bucket, count in value.items():
        delay = text.number("val", bucket)
        counts[delay] = counts.get(delay, 0.0) + _non_negative(f"val.{bucket[:20]}", count)
    if not sum(counts.values()) > 0:
        raise InvalidField("val", "packets in its buckets", value)
    return {bucket: count for bucket, count in counts.items() if count}


def _quantile(counts: Mapping[float, float], rank: float) -> float:
    """Return the first bucket with a cumulative count of at least *rank*."""
    cumulative = 0.0
    for bucket in sorted(counts):
        cumulative += counts[bucket]
        if cumulative >= rank:
            return bucket
    return max(counts)


def _non_negative(field: str, value: object) -> float:
    result = number(field, value)
    if result < 0:
        raise InvalidField(field, "a number that is not negative", value)
    return result


_METRICS: Mapping[str, Callable[[object, float], list[Measurement]]] = {
    "throughput": _throughput,
    "histogram-owdelay": _delays("one_way_delay"),
    "histogram-rtt": _delays("round_trip"),
    "packet-count-sent": _counted("packets.sent"),
    "packet-count-lost": _counted("packets.lost"),
    "packet-duplicates": _counted("packets.duplicated"),
    "packet-retransmits": _counted("packets.retransmitted"),
    "packet-loss-rate": _loss_rate,
}
