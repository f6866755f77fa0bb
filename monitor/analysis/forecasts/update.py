"""Update states with inputs that became known; reset a state if inputs that it has used have changed.

Both kinds of states (``metric_state``, ``success_state``) are updated by the functions of this module.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from forecasting.base import OutdatedState, Source
from forecasting.series import OWN_SERIES
from monitor.analysis.forecasts import pending_changes, states
from monitor.analysis.forecasts.input_digest import HOUR_MICROSECONDS, Input, InputDigest, by_key
from monitor.core.db.timestamps import micros, moment

if TYPE_CHECKING:
    from monitor.analysis.forecasts.inputs_sql import InputRelation
    from monitor.analysis.forecasts.states import StateRow
    from monitor.models.forecast_state import LearnedState

INPUTS_AT_ONCE = 1_000  # per call of read_part
MOST_HOURS = 200  # with changes: a state with more is reset
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
logger = logging.getLogger(__name__)


class StateUpdate(ABC):
    """The update of the state of one metric or series.

    Attributes:
        key: the key of the metric or series.
        sources: the sources of the inputs, by key of the metric or series that has the inputs.
        hours: the starts of the hours in which inputs changed.
        row: the locked row of the state.
    """

    model: ClassVar[type[LearnedState]]
    relation: ClassVar[InputRelation]
    row: StateRow

    def __init__(self, key: int, series: int, hours: Iterable[datetime] = ()) -> None:
        self.key, self.series, self.hours = key, series, set(hours)
        self.sources: dict[int, Source] = {key: OWN_SERIES}

    @classmethod
    @abstractmethod
    def read_sources(cls, updates: Iterable[Any]) -> None:
        """Set the sources of *updates*; while the rows are locked, the sources do not change."""

    @abstractmethod
    def learn(self, inputs: Sequence[Input]) -> None:
        """Use *inputs*, which became known in this order, after all inputs used before.

        Raises:
            forecasting.base.OutdatedState: another version of the methods made the state of the row.
        """

    @abstractmethod
    def answer(self, now: datetime) -> None:
        """Compute the answer that ``publish`` writes."""

    @abstractmethod
    def pack(self) -> None:
        """Set the learned columns of *row*."""

    @classmethod
    @abstractmethod
    def publish(cls, updates: Sequence[Any], now: datetime) -> None:
        """Write the answers of *updates*."""


Update = TypeVar("Update", bound=StateUpdate)


def use_changes(updates: Sequence[Update], now: datetime) -> list[Update]:
    """Use inputs that changed in the hours of *updates*; return the updates that have new inputs.

    All updates are of one class. If inputs that a state has used have changed, the state is reset: its inputs
    are read again in the background, and its answer stays until then. Part of the caller's transaction.
    """
    updates = [update for update in _locked(updates) if not update.row.is_reset]
    if not updates:
        return []
    inputs = by_key(updates[0].relation.in_hours(_wanted(updates)))
    changed, new = [], []
    for update in updates:
        hours = {micros(hour) // HOUR_MICROSECONDS for hour in update.hours}
        # Other updates may have asked for more hours of the same source.
        own = [item for source in update.sources for item in inputs.get(source, ()) if item.hour in hours]
        until = micros(update.row.used_until or EPOCH)
        used = (item for item in own if item.known_at <= until)
        if len(update.hours) > MOST_HOURS or not InputDigest.load(update.row.used).matches(hours, used):
            changed.append(update.key)
        elif not update.row.is_behind:
            record_later(update.series, (item for item in own if item.known_at > micros(now)))
            new.append((update, [item for item in own if until < item.known_at <= micros(now)]))
    if changed:
        logger.info("used inputs changed: %d states are reset", len(changed))
        states.reset(updates[0].model, changed)
    with_new = [(update, inputs) for update, inputs in new if inputs]
    _learn(with_new, now, is_behind=False)
    return [update for update, _ in with_new]


def read_part(update: StateUpdate, now: datetime, *, at_most: int = INPUTS_AT_ONCE) -> bool:
    """Read the next part of the inputs of *update* and use it, in the caller's transaction.

    A part has *at_most* inputs, or more if they became known at the same time. Return whether the state is
    still behind.
    """
    if not _locked([update]):
        return False  # the metric or series has been deleted
    row, sources = update.row, list(update.sources)
    found = by_key(update.relation.after(sources, row.used_until or EPOCH, now, at_most))
    new = [item for inputs in found.values() for item in inputs]
    was_behind, is_behind = row.is_behind, len(new) >= at_most
    if new or was_behind:
        _learn([(update, new)], now, is_behind=is_behind)
    if was_behind and not is_behind:
        later = by_key(update.relation.after(sources, now, END_OF_TIME, INPUTS_AT_ONCE))
        record_later(update.series, (item for inputs in later.values() for item in inputs))
    return is_behind


def _locked(updates: Sequence[Update]) -> list[Update]:
    """Lock the rows of *updates*, and set rows and sources; return the updates whose rows exist."""
    if not updates:
        return []
    rows = states.lock_or_create(updates[0].model, [update.key for update in updates])
    locked = [update for update in updates if update.key in rows]
    for update in locked:
        update.row = rows[update.key]
    updates[0].read_sources(locked)
    return locked


def record_later(series: int, inputs: Iterable[Input]) -> None:
    """Record pending changes of *series* for *inputs* that become known only in the future.

    Such inputs come from reporters with fast clocks; the changes are due when the inputs become known.
    """
    due_at: dict[int, int] = {}
    for item in inputs:
        due_at[item.hour] = min(item.known_at, due_at.get(item.hour, item.known_at))
    for hour, known_at in due_at.items():
        pending_changes.record([(series, moment(hour * HOUR_MICROSECONDS))], moment(known_at))


def _wanted(updates: Iterable[StateUpdate]) -> Collection[tuple[int, datetime]]:
    return {
        (source, hour)
        for update in updates
        if len(update.hours) <= MOST_HOURS
        for source in update.sources
        for hour in update.hours
    }


def _learn(updates: Sequence[tuple[Update, Sequence[Input]]], now: datetime, *, is_behind: bool) -> None:
    """Use the new inputs of each update and write the states; write the answers too, unless *is_behind*.

    *is_behind* means that there are more inputs to read.
    """
    learned = []
    for update, inputs in updates:
        try:
            _use(update, inputs)
            update.row.is_behind = is_behind
            if not is_behind:
                update.answer(now)
            update.pack()
        except OutdatedState:
            states.reset(update.model, [update.key])
        except Exception:  # the defect of one method does not stop the forecasts of other metrics
            logger.exception("updating the forecasts of %s failed", update)
            states.give_up(update.model, update.key)
        else:
            learned.append(update)
    if learned:
        states.write(learned[0].model, [update.row for update in learned])
        if not is_behind:
            learned[0].publish(learned, now)


def _use(update: StateUpdate, inputs: Sequence[Input]) -> None:
    update.learn(sorted(inputs, key=lambda item: (item.known_at, item.time, item.key, item.value)))
    digest = InputDigest.load(update.row.used)
    for item in inputs:
        digest.add(item)
    update.row.used = digest.dump()
    known_until = moment(max(item.known_at for item in inputs)) if inputs else EPOCH
    update.row.used_until = max(known_until, update.row.used_until or EPOCH)
