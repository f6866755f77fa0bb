"""The text formats of Prometheus and OpenMetrics, compressed.

The samples are the same lines in both; the lines above them differ, and the end. prometheus_client escapes
every label of every sample, which takes most of the time of a large answer: here the labels of a series are
written once.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monitor.web.metrics.definitions import MetricDefinition

TEXT, OPENMETRICS = "text/plain", "application/openmetrics-text"
UNITS = ("seconds", "bytes")  # of names that end with one; OpenMetrics asks for a line
_FAST, _GZIP = 1, 31  # zlib: the fastest level, and the format
_NOT_FINITE = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}


class Family:
    """The samples of the metric *definition*."""

    def __init__(self, definition: MetricDefinition) -> None:
        self._definition = definition
        self._lines: list[str] = []

    def add(self, value: float, *labels: str) -> None:
        """Add a sample; *labels* are the values of the labels of the definition."""
        self.add_labelled(value, labelled(self._definition.labels, labels))

    def add_labelled(self, value: float, labels: str, suffix: str = "") -> None:
        """Add a sample whose *labels* are text as of ``labelled``; *suffix* is that of a histogram's part."""
        braces = f"{{{labels}}}" if labels else ""
        self._lines.append(f"{self._definition.name}{suffix}{braces} {number(value)}\n")

    def text(self, media_type: str) -> str:
        name, kind, unit = self._definition.name, self._definition.kind, ""
        if media_type == OPENMETRICS:
            name = name.removesuffix("_total").removesuffix("_info")
            unit = "".join(f"# UNIT {name} {each}\n" for each in UNITS if name.endswith(f"_{each}"))
        elif kind == "info":
            kind = "gauge"
        head = f"# HELP {name} {self._definition.meaning}\n# TYPE {name} {kind}\n{unit}"
        return "".join([head, *self._lines])


def labelled(names: Sequence[str], values: Sequence[str]) -> str:
    """Return labels as text: ``site="alpha",state="up"``."""
    return ",".join([f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True)])


def escaped(value: str) -> str:
    """Return the text of a label's value."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def number(value: float) -> str:
    """Return the text of a sample's value."""
    text = repr(float(value))
    return text if math.isfinite(value) else _NOT_FINITE[text]


def compressed(families: Iterable[Family], media_type: str) -> bytes:
    """Return *families* in *media_type*, ``TEXT`` or ``OPENMETRICS``, compressed by gzip."""
    gzip = zlib.compressobj(_FAST, wbits=_GZIP)
    parts = [gzip.compress(family.text(media_type).encode()) for family in families]
    end = b"# EOF\n" if media_type == OPENMETRICS else b""
    return b"".join([*parts, gzip.compress(end), gzip.flush()])


def decompressed(answer: bytes) -> bytes:
    return zlib.decompress(answer, wbits=_GZIP)
