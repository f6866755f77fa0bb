"""Format numbers with units for people."""

from __future__ import annotations

import math

_YEAR = 365.25 * 86400  # seconds
_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def unit_of(name: str) -> str:
    """Return the unit at the end of the parameter *name*; empty if the name does not end in a unit."""
    return next((unit for unit in ("bytes_per_second", "seconds", "bytes") if name.endswith(unit)), "")


def humanised(value: float, unit: str) -> str:
    """Return *value* with a suitable prefix and unit: ``12.3 MB/s``, ``4 min 05 s``, ``45 %``."""
    if unit == "seconds":
        return seconds(value)
    if unit in {"bytes", "bytes_per_second"}:
        return _bytes(value) + ("/s" if unit == "bytes_per_second" else "")
    if unit == "count":
        return f"{value:,.6g}"
    if unit == "ratio":
        return f"{100 * value:,.4g} %"
    if unit.endswith("_per_second"):
        number, prefix = _in_thousands(value)
        return " ".join(filter(None, (number, prefix, unit.replace("_per_second", "/s"))))
    return f"{value:,.4g} {unit.replace('_per_', '/')}"


def seconds(value: float) -> str:
    """Format *value* seconds: ``85.3 us``, ``0.42 s``, ``11.8 s``, ``12 min 30 s``, ``3 h 05 min``."""
    if 0 < abs(value) < 0.01:
        return f"{value * 1e3:.3g} ms" if abs(value) >= 0.001 else f"{value * 1e6:.3g} us"
    if abs(value) < 1:
        return f"{value:.2f} s"
    if abs(value) < 600:
        return f"{value:.1f} s"
    return coarse_seconds(value)


def seconds_range(low: float, high: float) -> str:
    """Format a range of seconds with the digits of its larger end: ``0.1 to 10.7 s``, ``1.0 s to 12 min``."""
    size = max(abs(low), abs(high))
    if 0.01 <= size < 600:
        digits = 1 if size >= 1 else 2
        return f"{low:.{digits}f} to {high:.{digits}f} s"
    return f"{seconds(low)} to {seconds(high)}"


def coarse_seconds(value: float) -> str:
    """Format *value* seconds in the two largest units, as whole numbers."""
    whole = math.floor(abs(value))
    sign = "-" if value < 0 else ""
    for size, unit, below, lesser in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return (
                f"{sign}{whole // size} {unit} {rest:02d} {lesser}"
                if rest
                else f"{sign}{whole // size} {unit}"
            )
    return f"{sign}{whole} s"


def age(value: float) -> str:
    """Format an age of *value* seconds: ``now``, ``40 s ago``, ``29 years ago``; ``in 40 s`` if negative."""
    if abs(value) < 1:
        return "now"
    text = _largest_unit(abs(value))
    return f"{text} ago" if value > 0 else f"in {text}"


def exact(value: float) -> str:
    """Return the shortest text that parses to exactly *value*."""
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def percent(share: float) -> str:
    """Format a share of 1 as a percentage; only exactly 0 and 1 become ``0 %`` and ``100 %``."""
    whole = round(100 * share)
    if whole == 100 and share < 1:
        return "> 99 %"
    return "< 1 %" if whole == 0 and share > 0 else f"{whole} %"


def tenths_of_percent(share: float) -> str:
    """Format a share of 1 to a tenth of a percent; only exactly 1 becomes ``100.0 %``."""
    tenths = round(1000 * share)
    if tenths == 1000 and share < 1:
        tenths = 999
    return f"{tenths / 10:.1f} %"


def _largest_unit(value: float) -> str:
    if value >= 2 * _YEAR:
        return f"{math.floor(value / _YEAR)} years"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if value >= size:
            return f"{math.floor(value / size)} {unit}"
    return f"{math.floor(value)} s"


def significant(value: float) -> str:
    """Format *value* with three significant digits, from 1,000 on as a whole number."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _bytes(value: float) -> str:
    number, prefix = _in_thousands(value)
    return f"{number} {prefix}B"


def _in_thousands(value: float) -> tuple[str, str]:
    """Return three significant digits and an SI prefix, which may be empty."""
    for size, prefix in _THOUSANDS:
        if abs(value) >= size:
            return f"{value / size:.3g}", prefix
    return f"{value:.3g}", ""


def counted(number: int, noun: str) -> str:
    """Return *number* with *noun*: ``1 run``, ``2,000 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
