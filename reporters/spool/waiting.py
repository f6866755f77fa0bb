"""Read what a spool would deliver, without changing anything in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from reporters.spool.chains import Chains
from reporters.spool.files import spool_errors
from reporters.spool.lanes import Lanes
from reporters.spool.owner import Observer, Process
from reporters.spool.records import MOST_BYTES, MOST_RECORDS, Part


def waiting_batches(directory: Path) -> Iterator[list[Part]]:
    """Yield the requests that deliver the spool in *directory*, the oldest records first.

    A spool that is in use may deliver fresh records earlier, and what it delivers meanwhile is not yielded.

    Raises:
        SpoolError: the directory cannot be read.
    """
    with spool_errors(f"cannot read the spool {directory}"):
        if not directory.exists():
            return
        chains = Chains(directory, Observer(Process.current(), time.monotonic), is_durable=False)
        chains.refresh()
        lanes = Lanes(lambda _view, _segment: None)
        while parts := lanes.batch(chains.views, MOST_RECORDS, MOST_BYTES):
            yield parts
