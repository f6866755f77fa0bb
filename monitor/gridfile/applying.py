"""Plan and apply: what a file says against what the depot has, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from monitor.db.advisory_locks import AdvisoryLock, lock_until_commit, retry_on_lock_timeout
from monitor.gridfile import depot
from monitor.gridfile.definition import Grid
from monitor.gridfile.loading import load
from monitor.gridfile.planning import History, Plan, plan
from monitor.gridfile.writing import write


def planned(file: str, *, prune: bool) -> Plan:
    """What applying *file* would do now; nothing is changed.

    Raises:
        InvalidGridFile: with everything that is wrong with the file.
        OSError: it cannot be read.
    """
    with transaction.atomic():
        return _plan(load(file, depot.outside()), prune=prune)


def apply(file: str, *, prune: bool) -> Plan:
    """Make the depot what *file* says, all of it or nothing; return what was done. Raises as ``planned``."""
    with changing():
        wanted = load(file, depot.outside())
        return retry_on_lock_timeout(lambda: _applied(wanted, prune=prune))


@contextmanager
def changing() -> Iterator[None]:
    """A transaction in which nobody else changes what is set up this way: the second waits for the first."""
    with transaction.atomic():
        lock_until_commit(AdvisoryLock.GRID_FILE)
        yield


def _applied(grid: Grid, *, prune: bool) -> Plan:
    done = _plan(grid, prune=prune)
    write(done)
    return done


def _plan(grid: Grid, *, prune: bool) -> Plan:
    have = depot.read()
    history = depot.history(have.series.keys() - grid.series.keys()) if prune else History()
    return plan(have, grid, prune=prune, history=history)
