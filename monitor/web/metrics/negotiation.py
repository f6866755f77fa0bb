"""Choose the format of an answer by the header ``Accept`` (RFC 9110), as Prometheus sends it.

A range may name a version of a format, and other parameters, such as ``escaping``: all names of gridcast's
metrics are ASCII, so that every way to escape names gives the same text.
"""

from __future__ import annotations

from typing import NamedTuple

from monitor.web.metrics.text_format import OPENMETRICS, TEXT


class ScrapeFormat(NamedTuple):
    """A media type with its version."""

    media_type: str
    version: str

    @property
    def content_type(self) -> str:
        return f"{self.media_type}; version={self.version}; charset=utf-8"


# In our order of preference, which decides among formats that a client likes equally. Version 1.0.0 of the
# text format differs from 0.0.4 in names that are not ASCII only.
FORMATS = (
    ScrapeFormat(TEXT, "0.0.4"),
    ScrapeFormat(OPENMETRICS, "1.0.0"),
    ScrapeFormat(TEXT, "1.0.0"),
)


class _AcceptedRange(NamedTuple):
    """A media range of ``Accept``; *version* is empty if it names none."""

    kind: str
    version: str
    quality: float

    def precision(self, offered: ScrapeFormat) -> int:
        """Return how precisely the range names *offered*, 0 if it does not cover it."""
        main_type = offered.media_type.partition("/")[0]
        level = {"*/*": 1, f"{main_type}/*": 2, offered.media_type: 3}.get(self.kind, 0)
        if not level or (self.version and self.version != offered.version):
            return 0
        return level + bool(self.version)


def preferred_format(accept: str) -> ScrapeFormat:
    """Return the format that *accept* prefers; the first of ``FORMATS`` if it accepts none of them."""
    ranges = [_read(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return FORMATS[0]
    best = max(FORMATS, key=lambda offered: _quality(offered, ranges))  # the first of equals
    return best if _quality(best, ranges) > 0 else FORMATS[0]


def _quality(offered: ScrapeFormat, ranges: list[_AcceptedRange]) -> float:
    """Return the quality of the range that names *offered* most precisely."""
    precise = max(ranges, key=lambda each: (each.precision(offered), each.quality))
    return precise.quality if precise.precision(offered) else 0.0


def _read(text: str) -> _AcceptedRange:
    kind, *parameters = (part.strip().lower() for part in text.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    named = {name.strip(): value.strip().strip('"') for name, _, value in pairs}
    try:
        quality = float(named.get("q", "1"))
    except ValueError:
        quality = 0.0
    return _AcceptedRange(kind, named.get("version", ""), quality if 0 <= quality <= 1 else 0.0)
