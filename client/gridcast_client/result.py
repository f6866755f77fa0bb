"""The result of a command: what programs and people read, and the exit status."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from typing import Any

from gridcast_client import Delivery, GridcastError

DONE, USAGE, NO_FORECAST, AGAIN, REFUSED = 0, 2, 3, 4, 5  # exit status


@dataclass(frozen=True)
class Result:
    """The *answer* for programs, the *text* for people, and the exit *status*."""

    answer: Any
    text: str
    status: int = DONE
    error: GridcastError | None = None
    note: str = ""


def width() -> int:
    """Return the width of the terminal; what a program reads is not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000


def delivered(delivery: Delivery, *, is_kept: bool) -> Result:
    """Return the result of a delivery; *is_kept*: what was given now is in the spool at least."""
    counts = (
        (sum(receipt.accepted for receipt in delivery.receipts), "report accepted", "reports accepted"),
        (len(delivery.told), "outcome told", "outcomes told"),
        (len(delivery.refused), "refused", "refused"),
        (delivery.waiting, "file waits in the spool", "files wait in the spool"),
    )
    parts = [f"{n} {one if n == 1 else several}" for n, one, several in counts if n]
    text = ", ".join(parts) or "nothing to deliver"
    refused = "\n".join(f"refused: {error}" for error in delivery.refused[:10])
    status = REFUSED if delivery.refused else DONE
    if delivery.error is not None and not (delivery.error.again and is_kept):
        status = AGAIN if delivery.error.again else REFUSED
    return Result(delivery, f"{text}\n{refused}".strip(), status, delivery.error)
