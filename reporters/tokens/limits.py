"""How many tokens a storage area has: given by hand, or the verdict of a sweep."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIB = 1 << 20


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
        document = json.loads(file.read_text(encoding="utf-8"))
        return _limits(document)
    except OSError as error:
        raise BadVerdict(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise BadVerdict(f"{file}: expected the output of python -m forecasting sweet-spot --json") from None


def _limits(document: Any) -> tuple[int, int, str]:
    verdict, gain = document["verdict"], document["gain"]
    low, high = float(gain["low"]), float(gain["high"])
    if verdict == "helps":
        readers, writers = int(gain["streams"]["readers"]), int(gain["streams"]["writers"])
        if readers < 1 or writers < 1:
            raise ValueError(gain)
        return readers, writers, ""
    why = f"the sweep's verdict is that a limit {_worded(verdict)}"
    return 0, 0, f"{why}: it changes the time by {-high:+.1%} to {-low:+.1%}"


def _worded(verdict: str) -> str:
    return {"does not help": "does not help", "undecided": "may or may not help"}[verdict]
