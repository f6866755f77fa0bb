"""Plan and apply: compare a grid file with the depot, and write the difference in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit, retry_on_lock_timeout
from monitor.operations.gridfile import depot
from monitor.operations.gridfile.definition import GridDefinition
from monitor.operations.gridfile.loading import load
from monitor.operations.gridfile.planning import History, Plan, plan
from monitor.operations.gridfile.recording import note_change
from monitor.operations.gridfile.writing import write


def plan_file(file: str, *, prune: bool) -> Plan:
    """Return what applying *file* would change; change nothing.

    With *prune*, definitions that the file lacks are removed.

    Raises:
        InvalidYamlFile: with all errors of the file.
        OSError: the file cannot be read.
    """
    with transaction.atomic():
        return _plan(load(file, depot.names()), prune=prune)


def apply(file: str, *, prune: bool) -> Plan:
    """Apply all changes of *file* or no change; return the plan that was executed.

    Arguments and errors are those of ``plan_file``.
    """
    with locked_transaction():
        grid = load(file, depot.names())
        applied = retry_on_lock_timeout(lambda: _plan_and_write(grid, prune=prune))
        for change in applied.changes():
            note_change(change)
        return applied


@contextmanager
def locked_transaction() -> Iterator[None]:
    """Open a transaction; wait until no other transaction holds the lock of grid files."""
    with transaction.atomic():
        lock_until_commit(AdvisoryLock.GRID_FILE)
        yield


def _plan_and_write(grid: GridDefinition, *, prune: bool) -> Plan:
    grid_plan = _plan(grid, prune=prune)
    write(grid_plan)
    return grid_plan


def _plan(grid: GridDefinition, *, prune: bool) -> Plan:
    current = depot.read()
    history = depot.history(current.series.keys() - grid.series.keys()) if prune else History()
    return plan(current, grid, prune=prune, history=history)
