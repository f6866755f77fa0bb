"""How many tokens a storage area has: given by hand, or the verdict of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reporters.fields import Fields, Unfit, parse_object

MIB = 1 << 20
_MOST_BYTES = MIB  # of a verdict: thousands of settings
_WORDED = {"does not help": "does not help", "undecided": "may or may not help"}


@dataclass(frozen=True)
class TokenLimits:
    """The tokens of an area. With an *off_reason* there is no limit, as one does not help there."""

    readers: int = 0
    writers: int = 0
    quantum_bytes: int = 16 * MIB
    linger_seconds: float = 0.005
    off_reason: str = ""


class BadVerdict(Exception):
    """A file is not what ``python -m forecasting sweet-spot --json`` prints; the message says why."""


def from_sweep(file: Path) -> tuple[int, int, str]:
    """Return readers, writers and, if a limit is not known to help, the reason to have none.

    Raises:
        BadVerdict: *file* cannot be read, or is no verdict.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        return _limits(Fields(parse_object(data, max_bytes=_MOST_BYTES)))
    except OSError as error:
        raise BadVerdict(f"cannot read {file}: {error.strerror}") from None
    except Unfit as error:
        raise BadVerdict(
            f"{file}: expected the output of python -m forecasting sweet-spot --json: {error}"
        ) from None


def _limits(document: Fields) -> tuple[int, int, str]:
    verdict = document.choice("verdict", ("helps", *_WORDED))
    gain = document.fields("gain")
    low, high = gain.number("low"), gain.number("high")
    if verdict == "helps":
        streams = gain.fields("streams")
        return streams.integer("readers", minimum=1), streams.integer("writers", minimum=1), ""
    why = f"the sweep's verdict is that a limit {_WORDED[verdict]}"
    return 0, 0, f"{why}: it changes the time by {-high:+.1%} to {-low:+.1%}"
