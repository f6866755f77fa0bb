"""Sources of the weather at the sites: no weather, weather drawn at random, or a fault set by hand."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from monitor.testbed.weather.climate import STEP_SECONDS
from monitor.testbed.weather.conditions import FAULT_KINDS, Conditions, SiteFault
from reporters.report import parse_rfc3339

FAULT_FILE = "fault.json"

log = logging.getLogger(__name__)


class WeatherSource(Protocol):
    """Provides the conditions of a run, or of the grid as a whole."""

    def at(self, label: str | None, now: datetime) -> Conditions | None:
        """Return the conditions of the run *label* (``series@slot``); None if there is no weather.

        If *label* is None, return the conditions at *now*.
        """
        ...


class NoWeather:
    """A source of no weather: no site is slow and nothing fails."""

    def at(self, label: str | None, now: datetime) -> None:  # noqa: ARG002 - the protocol
        return None


class DrawnWeather:
    """Draws the conditions of each time step; all stages of a run have the conditions of its slot.

    *draw* returns the conditions of the step with a given number (``step_index``).
    """

    def __init__(self, draw: Callable[[int], Conditions], epoch: datetime, scale: float) -> None:
        self.draw = draw
        self.epoch = epoch
        self.scale = scale
        self._last: Conditions | None = None

    def at(self, label: str | None, now: datetime) -> Conditions:
        index = step_index(slot_of(label) or now, self.epoch, self.scale)
        if self._last is None or self._last.index != index:
            self._last = self.draw(index)
        return self._last


def step_index(time: datetime, epoch: datetime, scale: float) -> int:
    """Return the number of the weather step at *time*; step 0 begins at *epoch*.

    *scale* is the number of grid seconds per real second. Times before the epoch (a slot that was claimed
    late) belong to step 0.
    """
    return max(0, int((time - epoch).total_seconds() * scale // STEP_SECONDS))


def slot_of(label: str | None) -> datetime | None:
    """Return the slot in a run's label ``series@slot``; None if the label has no slot."""
    if label is None or "@" not in label:
        return None
    try:
        return parse_rfc3339(label.rpartition("@")[2])
    except ValueError:
        return None


class WithManualFault:
    """Wraps the source *source*; while the file *path* exists, its fault replaces the fault of *source*.

    The file holds ``{"site": "ncsa", "mechanism": "compile", "kind": "missing"}``.
    """

    def __init__(self, source: WeatherSource, path: Path, names: tuple[str, ...]) -> None:
        self.source = source
        self.path = path
        self.names = names

    def at(self, label: str | None, now: datetime) -> Conditions | None:
        conditions = self.source.at(label, now)
        fault = self._fault()
        if fault is None:
            return conditions
        if conditions is None:
            return Conditions(index=0, seconds={}, slowest_site={}, others_fraction=1.0, fault=fault)
        return Conditions(**{**vars(conditions), "fault": fault})

    def _fault(self) -> SiteFault | None:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            return parse_fault(text, self.names)
        except ValueError as error:
            log.warning("%s is ignored: %s", self.path, error)
            return None


def parse_fault(text: str, names: tuple[str, ...]) -> SiteFault:
    """Parse the JSON of a fault at one of the sites *names*.

    Raises:
        ValueError: a name is unknown; the message has this name and the valid names.
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError(f"expected an object, got {text!r}")
    site, mechanism, kind = (str(document.get(key)) for key in ("site", "mechanism", "kind"))
    _check_name("site", site, names)
    _check_name("mechanism", mechanism, tuple(FAULT_KINDS))
    _check_name("kind", kind, FAULT_KINDS[mechanism])
    return SiteFault(names.index(site), mechanism, kind)


def _check_name(kind: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise ValueError(f"unknown {kind} {name!r}; known are {', '.join(names)}")
