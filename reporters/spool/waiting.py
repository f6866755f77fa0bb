"""Read what a spool would deliver, without changing anything in it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from reporters.spool.chains import ChainHead, Chains
from reporters.spool.files import spool_errors
from reporters.spool.lanes import Lane, Lanes
from reporters.spool.owner import Observer, Process
from reporters.spool.records import MOST_BYTES, MOST_RECORDS, Part
from reporters.spool.status import SpoolStatus, status_of


class WaitingSpool:
    """The spool in *directory* as it is now; a directory that does not exist is an empty spool.

    Raises:
        SpoolError: the directory cannot be read; also raised by the methods.
    """

    def __init__(self, directory: Path) -> None:
        self._doing = f"cannot read the spool {directory}"
        self._chains = Chains(directory, Observer(Process.current(), time.monotonic), is_durable=False)
        with spool_errors(self._doing):
            if directory.exists():
                self._chains.refresh()

    def status(self) -> SpoolStatus:
        with spool_errors(self._doing):
            return status_of(self._chains)

    def heads(self) -> Sequence[ChainHead]:
        """Return the heads of the chains, the oldest first."""
        with spool_errors(self._doing):
            return self._chains.heads()

    def batches(self) -> Iterator[list[Part]]:
        """Yield the requests that deliver the spool, the oldest records first.

        An agent that runs delivers fresh records earlier.
        """
        lanes = Lanes(lambda _view, _segment: None, time.monotonic)
        with spool_errors(self._doing):
            while parts := lanes.batch(self._chains.views, MOST_RECORDS, MOST_BYTES, Lane.BOTH):
                yield parts
