"""perfSONAR: what its measurement archive esmond has, as JSON (docs.perfsonar.net, "Measurement Archive REST
API"): an array of ``{"ts": time, "val": value}`` as the API gives it or, with ``path``, as esmond keeps it.

Times are seconds since 1970 in the API and milliseconds in the store: what is later than the year 5000 is
the latter. Throughput is in bits a second, and in bytes here. A histogram says how many packets were so long
on their way; its buckets are milliseconds. Of it the least, the most, the mean and quantiles are kept; a
quantile is the bucket that the packet fell in. A count or a histogram is of a window of time, and known at
its end; a test of throughput says nothing of how long it took.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from monitor.imports.formats import text
from monitor.imports.formats.base import (
    Example,
    InvalidOption,
    Item,
    LeftOut,
    Measured,
    Misfit,
    Option,
    time_at,
)
from monitor.imports.formats.documents import Document, number
from probes.base import Measurement, Value

_MILLISECONDS_FROM = 1e11
_KEY_CHARACTERS = 8  # of a metadata key, in names of series
_MOST_BUCKETS = 100_000
_BITS = 8


class Importer:
    summary = (
        "perfSONAR/esmond JSON: throughput, delays, losses; a series for each measurement and kind of event."
    )
    measures = "grid"
    options = {
        "event_type": Option(
            "what was measured, where the data do not say it: throughput, ...", metavar="TYPE"
        ),
        "window_seconds": Option("how long each count or histogram went on", "60", "SECONDS"),
        "bucket_seconds": Option("what a histogram's 1 means", "0.001", "SECONDS"),
    }
    example = Example(
        b'[{"path": ["ps", "throughput", "EC7E5AF67F8746C8"], "ts": 1382995070000, "val": 7283024174},\n'
        b' {"path": ["ps", "histogram_owdelay", "0CB19291FB6D40EA"], "ts": 1391548750000,\n'
        b'  "val": {"40": 2, "64": 3}}]\n'
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.event_type = _type(options["event_type"])
        if self.event_type and self.event_type not in _METRICS:
            raise InvalidOption(f"expected one of {', '.join(sorted(_METRICS))}", "event_type")
        try:
            self.window_seconds = text.seconds("window_seconds", options["window_seconds"])
            self.bucket_seconds = text.seconds("bucket_seconds", options["bucket_seconds"])
        except Misfit as misfit:
            raise InvalidOption(f"expected {misfit.expected}, got {misfit.got!r}", misfit.field) from None

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        document = Document(stream)
        for place, first in enumerate(document.elements("of measurements"), start=1):
            where, value = f"item {place}", document.value(first)
            try:
                yield self._item(where, value)
            except Misfit as misfit:
                yield misfit.at(where)

    def _item(self, where: str, value: Any) -> Measured | LeftOut:
        if not isinstance(value, dict):
            raise Misfit("item", "an object with ts and val", value)
        if value.get("is_valid", 1) == 0:
            return LeftOut(where, "the archive says that it is not valid")
        event_type, key = self._measurement(value.get("path"))
        at = number("ts", value.get("ts"))
        slot = time_at("ts", at / 1000 if at >= _MILLISECONDS_FROM else at)
        if event_type not in _METRICS:
            raise Misfit("path", f"one of {', '.join(sorted(_METRICS))}", event_type)
        said = _METRICS[event_type](value.get("val"), self.bucket_seconds)
        parameters: dict[str, Value] = {"event_type": event_type, **({"metadata_key": key} if key else {})}
        name = "-".join(
            part
            for part in (event_type, text.slug(key[:_KEY_CHARACTERS].lower())[:30] if key else "")
            if part
        )
        window = 0.0 if event_type == "throughput" else self.window_seconds
        return Measured(where, slot, window, said, series=name, parameters=parameters)

    def _measurement(self, path: object) -> tuple[str, str]:
        """The kind of event, and which measurement it is of."""
        if path is None:
            if not self.event_type:
                raise Misfit("path", "the kind of event, or the option --event-type", path)
            return self.event_type, ""
        if not isinstance(path, list) or len(path) < 3 or not all(isinstance(part, str) for part in path):
            raise Misfit("path", 'an array such as ["ps", "throughput", key]', path)
        return _type(path[1]), "-".join(path[2:])


def _type(name: str) -> str:
    """As the API spells it: the store has ``_`` for ``-``."""
    return name.replace("_", "-")


def _throughput(value: object, _bucket: float) -> list[Measurement]:
    return [Measurement("throughput.bytes_per_second", _least("val", value) / _BITS, "bytes_per_second")]


def _counted(name: str) -> Callable[[object, float], list[Measurement]]:
    return lambda value, _bucket: [Measurement(name, _least("val", value), "count")]


def _loss_rate(value: object, _bucket: float) -> list[Measurement]:
    """The API has a number, the store what it was made of."""
    if isinstance(value, dict):
        lost, of = (
            number("val.numerator", value.get("numerator")),
            number("val.denominator", value.get("denominator")),
        )
        if not 0 <= lost <= of or not of:
            raise Misfit("val", "a numerator and a denominator that is not less", value)
        value = lost / of
    return [Measurement("packets.lost", _least("val", value), "ratio")]


def _delays(prefix: str) -> Callable[[object, float], list[Measurement]]:
    def metrics(value: object, bucket_seconds: float) -> list[Measurement]:
        counts = _histogram(value)
        packets = sum(counts.values())
        mean = math.fsum(delay * count for delay, count in counts.items()) / packets
        found = {
            "min": min(counts),
            "mean": mean,
            "median": _quantile(counts, 0.5 * packets),
            "p95": _quantile(counts, 0.95 * packets),
            "max": max(counts),
        }
        seconds = [
            Measurement(f"{prefix}.{name}.seconds", of * bucket_seconds, "seconds")
            for name, of in found.items()
        ]
        return [*seconds, Measurement("packets.received", packets, "count")]

    return metrics


def _histogram(value: object) -> dict[float, float]:
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_BUCKETS:
        raise Misfit("val", f"an object of 1 to {_MOST_BUCKETS} buckets", value)
    counts: dict[float, float] = {}
    for bucket, count in value.items():
        of = text.number("val", bucket)
        counts[of] = counts.get(of, 0.0) + _least(f"val.{bucket[:20]}", count)
    if not sum(counts.values()) > 0:
        raise Misfit("val", "packets in its buckets", value)
    return {bucket: count for bucket, count in counts.items() if count}


def _quantile(counts: Mapping[float, float], rank: float) -> float:
    """The least bucket up to which there are at least *rank* packets."""
    seen = 0.0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= rank:
            return bucket
    return max(counts)


def _least(field: str, value: object) -> float:
    """A number that is not negative."""
    found = number(field, value)
    if found < 0:
        raise Misfit(field, "a number that is not negative", value)
    return found


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
