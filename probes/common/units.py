"""Convert units of other monitoring systems to SI units."""

from __future__ import annotations

import re

from probes.common.external_metrics import safe_name

_UNIT_CHARACTERS = 50
_PER_SECOND = re.compile(r"(.+?)(?:/ ?(?:s|sec|second)|ps)")

_SECONDS = {
    "h": 3600.0,
    "hours": 3600.0,
    "min": 60.0,
    "minutes": 60.0,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "usecs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
}
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXES.update({f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", start=1)})
# B is a byte, b a bit. Bits are converted to bytes, so that all rates are comparable.
_BYTES = {
    f"{prefix}{name}": factor / bits
    for prefix, factor in _PREFIXES.items()
    for bits, names in ((1, ("B", "byte", "bytes", "Byte", "Bytes")), (8, ("b", "bit", "bits")))
    for name in names
}


def si_unit(unit: str) -> tuple[float, str]:
    """Return (factor, SI unit); the factor converts values in *unit* to the SI unit.

    Prefixes are decimal (KB: 1000 bytes), as in SI and Icinga, unless they are binary by name (KiB); the
    guidelines for Nagios plugins do not define prefixes. An unknown unit is unchanged, with factor 1.
    """
    text = unit.strip()
    rate = _PER_SECOND.fullmatch(text)
    if rate is not None and rate[1].strip() in _BYTES:
        return _BYTES[rate[1].strip()], "bytes_per_second"
    if text in _BYTES:
        return _BYTES[text], "bytes"
    if text.lower() in _SECONDS:
        return _SECONDS[text.lower()], "seconds"
    if text.lower() in ("%", "percent"):
        return 0.01, "ratio"
    if text in ("", "c"):  # "c" is a counter
        return 1.0, "count"
    return 1.0, safe_name(text)[:_UNIT_CHARACTERS]
