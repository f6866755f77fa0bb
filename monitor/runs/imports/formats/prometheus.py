"""Prometheus: the matrix of a range query (prometheus.io/docs, "HTTP API", ``/api/v1/query_range``).

Each label set is a series of its own, with the labels as parameters. The unit follows from the suffix of the
metric's name (``_seconds``, ``_bytes``) or from an option. Counters are imported unchanged; to import rates,
query ``rate``. A value becomes known at its time. ``NaN``, ``+Inf`` and ``-Inf`` are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from monitor.runs.imports.formats import text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    Item,
    MalformedRecord,
    Option,
    SkippedRecord,
    Unreadable,
    time_at,
)
from monitor.runs.imports.formats.documents import Document, number
from probes.base import Measurement, Value
from probes.common.external_metrics import safe_name
from probes.common.units import si_unit

_NAME = "__name__"
_UNITS = {"seconds": "seconds", "bytes": "bytes", "ratio": "ratio", "celsius": "celsius", "meters": "meters"}
_NOT_NUMBERS = ("NaN", "+Inf", "-Inf", "Inf")
_MOST_LABELS = 100


class Importer:
    summary = "Prometheus range query JSON (a matrix): one series per label set."
    measures = "grid"
    options = {
        "metric": Option("name of the metric, if the result has none", "value", "NAME"),
        "unit": Option("unit of the values (default: from the suffix of the metric's name)", metavar="UNIT"),
        "resource_label": Option("label with the name of the resource", metavar="LABEL"),
    }
    example = Example(
        b'{"status": "success", "data": {"resultType": "matrix", "result": [{"metric":\n'
        b'{"__name__": "probe_duration_seconds", "instance": "se1:443"}, "values":\n'
        b'[[1772366400, "0.25"], [1772366460.781, "0.31"]]}]}}\n'
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.name, self.unit, self.label = options["metric"], options["unit"], options["resource_label"]

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        document = Document(stream)
        has_data = False
        for key in document.keys("the response of a query"):
            if key == "data":
                has_data = True
                yield from self._data(document)
            elif key in ("status", "error"):
                value = document.value()
                if value != "success":
                    raise Unreadable(f"expected the response of a query, got {key} {value!r:.200}")
            else:
                document.skip()
        if not has_data:
            raise Unreadable("expected the response of a query with data, got none")

    def _data(self, document: Document) -> Iterator[Item]:
        for key in document.keys("data"):
            if key == "resultType":
                kind = document.value()
                if kind != "matrix":
                    raise Unreadable(f"resultType: expected 'matrix', from a range query, got {kind!r:.80}")
            elif key == "result":
                for place, first in enumerate(document.elements("result"), start=1):
                    yield from self._series(document, f"result {place}", first)
            else:
                document.skip()

    def _series(self, document: Document, where: str, first: Any) -> Iterator[Item]:
        label_set: _LabelSet | None = None
        for key in document.keys(where, first):
            if key == "metric":
                label_set = self._label_set(where, document.value())
            elif key == "values":
                if label_set is None:
                    raise Unreadable(f"{where}: expected metric before values")
                for place, value in enumerate(document.elements("values"), start=1):
                    yield label_set.item(f"{where}, value {place}", document.value(value))
            else:
                document.skip()
                if key == "histograms":
                    yield SkippedRecord(where, "native histograms are not supported")

    def _label_set(self, where: str, labels: object) -> _LabelSet:
        if (
            not isinstance(labels, dict)
            or len(labels) > _MOST_LABELS
            or not all(isinstance(value, str) for value in labels.values())
        ):
            raise Unreadable(f"{where}: metric: expected an object of at most {_MOST_LABELS} labels")
        name = labels.get(_NAME) or self.name
        return _LabelSet(name, labels, *self._unit(name), labels.get(self.label, ""))

    def _unit(self, name: str) -> tuple[float, str]:
        if self.unit:
            return si_unit(self.unit)
        return 1.0, _UNITS.get(name.removesuffix("_total").rpartition("_")[2], "count")


class _LabelSet:
    def __init__(self, name: str, labels: Mapping[str, str], factor: float, unit: str, resource: str) -> None:
        self._name, self._factor, self._unit = safe_name(name), factor, unit
        self._series = _series_name(name, labels)
        self._parameters: dict[str, Value] = {_NAME: name, **dict(sorted(labels.items()))}
        self._resource = text.slug(resource)

    def item(self, where: str, pair: object) -> ImportedRun | SkippedRecord | MalformedRecord:
        try:
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str):
                raise InvalidField("value", "[time, text]", pair)
            if pair[1] in _NOT_NUMBERS:
                return SkippedRecord(where, "not a number")
            slot = time_at("time", number("time", pair[0]))
            metric = Measurement(self._name, text.number("value", pair[1], self._factor), self._unit)
        except InvalidField as error:
            return error.at(where)
        return ImportedRun(
            where,
            slot,
            0.0,
            [metric],
            series=self._series,
            parameters=self._parameters,
            resource=self._resource,
        )


def _series_name(name: str, labels: Mapping[str, str]) -> str:
    """Return name and label values as part of a series name, with the digest that ``text.slug`` appends."""
    others = {label: value for label, value in sorted(labels.items()) if label != _NAME}
    if not others:
        return text.slug(name)
    return text.slug(f"{name}-{'-'.join(others.values())} {json.dumps(others)}")
