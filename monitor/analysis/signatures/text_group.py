"""Failed runs with the same text."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from monitor.analysis.signatures.classifier import FailureText


class TextGroup(NamedTuple):
    """Failed runs with the same text, and what the latest of them says.

    *message* is its message without stage and resource, which the ledger puts before it. *signature* and
    *series* are keys.
    """

    failure: FailureText
    message: str
    signature: int | None
    runs: int
    series: frozenset[int]
    first: datetime
    latest: datetime
