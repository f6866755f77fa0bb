"""Which runs have a report in the spool, and what time a record is of: read from the bodies of records."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

from reporters.fields import parse_time
from reporters.spool.chain_view import ChainView
from reporters.spool.records import REPORT, Record

_RUN = re.compile(rb'"run":"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"')
_LEAST_ENTRIES = 1000


class RunIndex:
    """The records of reports by their run. Entries of delivered records are forgotten in time."""

    def __init__(self) -> None:
        self._records: dict[uuid.UUID, list[tuple[uuid.UUID, int]]] = {}
        self._most = _LEAST_ENTRIES

    def add(self, chain: uuid.UUID, record: Record) -> None:
        run = run_of(record)
        if run is not None:
            self._records.setdefault(run, []).append((chain, record.sequence))

    def pending(
        self, views: Mapping[uuid.UUID, ChainView], among: Iterable[uuid.UUID] | None = None
    ) -> set[uuid.UUID]:
        """Return the runs *among* these, or all, with a report that needs delivery."""
        return {
            run for run in list(self._records if among is None else among) if self._is_pending(run, views)
        }

    def _is_pending(self, run: uuid.UUID, views: Mapping[uuid.UUID, ChainView]) -> bool:
        waiting = [
            (chain, sequence)
            for chain, sequence in self._records.get(run, ())
            if chain in views and sequence not in views[chain].logs.done
        ]
        if waiting:
            self._records[run] = waiting
        else:
            self._records.pop(run, None)
        return bool(waiting)

    def prune(self, views: Mapping[uuid.UUID, ChainView]) -> None:
        """Forget delivered records if there are many entries."""
        if len(self._records) > self._most:
            self._most = 2 * len(self.pending(views)) + _LEAST_ENTRIES


def run_of(record: Record) -> uuid.UUID | None:
    """Return the run that *record* reports; None for a note or a body that names none."""
    if record.kind != REPORT:
        return None
    found = _RUN.findall(record.body)
    if len(found) == 1:
        return uuid.UUID(found[0].decode())
    run = _document(record).get("run")  # a nested object has the same name
    try:
        return uuid.UUID(run) if isinstance(run, str) else None
    except ValueError:
        return None


def time_of(record: Record) -> datetime | None:
    """Return when *record* was made, according to its body; None if it does not say so."""
    document = _document(record)
    clock = document.get("clock")
    text = clock.get("sent_at") if isinstance(clock, dict) else document.get("at")
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _document(record: Record) -> dict[str, object]:
    try:
        document = json.loads(record.body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
