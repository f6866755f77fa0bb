"""Update states with inputs that became known; reset a state of which used inputs changed.

Both kinds of states (``metric_state``, ``success_state``) are updated by the functions of this module.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from forecasting.base import OutdatedState, Source
from monitor.db.timestamps import micros, moment
from monitor.forecasts import pending_sql
from monitor.forecasts.input_digest import HOUR_MICROSECONDS, Input, InputDigest, by_key

if TYPE_CHECKING:
    from monitor.forecasts.inputs_sql import InputRelation
    from monitor.forecasts.state_table import StateRow, StateTable, StoredState

INPUTS_AT_ONCE = 1_000  # per call of read_part
MOST_HOURS = 200  # with changes: a state with more is reset
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
logger = logging.getLogger(__name__)


@dataclass
class StateUpdate(ABC):
    """A state while it is updated: of *key*, a metric or series, whose inputs come from *sources*.

    *hours* (their starts) are those in which inputs changed.
    """

    table: ClassVar[StateTable]
    relation: ClassVar[InputRelation]

    key: int
    series: int
    sources: Mapping[int, Source]
    hours: set[datetime] = field(default_factory=set)
    digest: InputDigest = field(default_factory=InputDigest)
    used_until: int = 0  # microseconds

    @classmethod
    @abstractmethod
    def read_sources(cls, updates: Iterable[Any]) -> None:
        """Set the sources of *updates*, whose rows are locked; nothing changes them from then on."""

    @abstractmethod
    def load(self, stored: StoredState | None) -> None:
        """Continue from what is *stored*; None: begin with nothing.

        Raises:
            forecasting.base.OutdatedState: other methods than today's made it.
        """

    @abstractmethod
    def learn(self, inputs: Sequence[Input]) -> None:
        """Use *inputs*, all of which became known later than those used before."""

    @abstractmethod
    def answer(self, now: datetime) -> None:
        """Compute what ``publish`` publishes."""

    @abstractmethod
    def row(self) -> dict[str, Any]:
        """Return the columns of the state's row that depend on its kind, and its key."""

    @classmethod
    @abstractmethod
    def publish(cls, updates: Sequence[Any], now: datetime) -> None:
        """Write the answers of *updates*."""


Update = TypeVar("Update", bound=StateUpdate)


def use_changes(updates: Sequence[Update], now: datetime) -> list[Update]:
    """Use what changed in the hours of *updates*, all of one kind; return those with new inputs.

    A state whose used inputs are not what they were is reset: its inputs are read again in the background,
    and its answer stays until then. Part of the caller's transaction.
    """
    if not updates:
        return []
    table = updates[0].table
    rows = table.follow_and_lock([update.key for update in updates])
    updates = [update for update in updates if update.key in rows and not rows[update.key].is_reset]
    if not updates:
        return []
    updates[0].read_sources(updates)
    inputs = by_key(updates[0].relation.in_hours(_wanted(updates)))
    changed, new = [], {}
    for update in updates:
        row, hours = rows[update.key], {micros(hour) // HOUR_MICROSECONDS for hour in update.hours}
        # Other updates may have asked for more hours of the same source.
        own = [item for source in update.sources for item in inputs.get(source, ()) if item.hour in hours]
        until = micros(row.used_until or EPOCH)
        used = (item for item in own if item.known_at <= until)
        if len(update.hours) > MOST_HOURS or not InputDigest.load(row.used).matches(hours, used):
            changed.append(update.key)
        elif not row.is_behind:
            record_later(update.series, (item for item in own if item.known_at > micros(now)))
            new[update.key] = [item for item in own if until < item.known_at <= micros(now)]
    if changed:
        logger.info("used inputs changed: %d states are reset", len(changed))
        table.reset(changed)
    with_new = [update for update in updates if new.get(update.key)]
    _learn(with_new, rows, new, now, is_behind=False)
    return with_new


def read_part(update: StateUpdate, now: datetime) -> None:
    """Read and use the next part of the depot's inputs; part of the caller's transaction."""
    row = update.table.lock([update.key]).get(update.key)
    if row is None:
        return
    update.read_sources([update])
    sources = list(update.sources)
    found = by_key(update.relation.after(sources, row.used_until or EPOCH, now, INPUTS_AT_ONCE))
    new = [item for inputs in found.values() for item in inputs]
    is_behind = len(new) >= INPUTS_AT_ONCE
    if new or row.is_behind:
        _learn([update], {row.key: row}, {row.key: new}, now, is_behind=is_behind)
    if row.is_behind and not is_behind:
        later = by_key(update.relation.after(sources, now, END_OF_TIME, INPUTS_AT_ONCE))
        record_later(update.series, (item for inputs in later.values() for item in inputs))


def record_later(series: int, inputs: Iterable[Input]) -> None:
    """Make *inputs* that become known later than now, by a fast clock, pending changes of *series* then."""
    due_at: dict[int, int] = {}
    for item in inputs:
        due_at[item.hour] = min(item.known_at, due_at.get(item.hour, item.known_at))
    for hour, known_at in due_at.items():
        pending_sql.record([(series, moment(hour * HOUR_MICROSECONDS))], moment(known_at))


def _wanted(updates: Iterable[StateUpdate]) -> Collection[tuple[int, datetime]]:
    return {
        (source, hour)
        for update in updates
        if len(update.hours) <= MOST_HOURS
        for source in update.sources
        for hour in update.hours
    }


def _learn(
    updates: Sequence[Update],
    rows: Mapping[int, StateRow],
    new: Mapping[int, Sequence[Input]],
    now: datetime,
    *,
    is_behind: bool,
) -> None:
    """Use the *new* inputs of *updates*, and write states and, unless more is to be read, answers."""
    if not updates:
        return
    table = updates[0].table
    stored = table.stored([update.key for update in updates])
    learned = []
    for update in updates:
        try:
            _use(update, rows[update.key], stored.get(update.key), new[update.key])
            if not is_behind:
                update.answer(now)
        except OutdatedState:
            table.reset([update.key])
        except Exception:  # the defect of one method does not stop the forecasts of other metrics
            logger.exception("updating the forecasts of %s failed", update)
            table.give_up([update.key])
        else:
            learned.append(update)
    written = [
        {
            "used_until": moment(update.used_until),
            "used": update.digest.dump(),
            "is_behind": is_behind,
            **update.row(),
        }
        for update in learned
    ]
    table.write(written)
    if learned and not is_behind:
        learned[0].publish(learned, now)


def _use(update: StateUpdate, row: StateRow, stored: StoredState | None, inputs: Sequence[Input]) -> None:
    update.digest = InputDigest.load(row.used)
    update.used_until = micros(row.used_until or EPOCH)
    update.load(stored)
    if inputs:
        update.learn(sorted(inputs, key=lambda item: (item.known_at, item.time, item.key, item.value)))
        for item in inputs:
            update.digest.add(item)
        update.used_until = max(item.known_at for item in inputs)
