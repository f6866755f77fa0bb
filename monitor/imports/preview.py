"""Say what an import would make, and make nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from monitor.imports.formats.base import Importer, Item, LeftOut, Measured
from monitor.imports.run import Listener, Stopped, Tally, wrong
from monitor.imports.targets import Target, refuse_taken


@dataclass
class Preview:
    """What would be made of a series; units by metric, runs by outcome."""

    first: datetime
    last: datetime
    units: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, one: Measured) -> None:
        self.first, self.last = min(self.first, one.slot), max(self.last, one.slot)
        self.outcomes[one.outcome] += 1
        self.units.update({f"stage.{stage.name}.seconds": "seconds" for stage in one.stages})
        self.units.update({metric.name: metric.unit for metric in one.metrics})


def preview(
    importer: Importer, stream: BinaryIO, target: Target, listener: Listener, *, strict: bool = False
) -> tuple[dict[str, Preview], Tally]:
    """What would be made of *stream*, by series; nothing is. All runs count as new.

    Raises:
        Unreadable, NotImported, Stopped: as ``import_history``.
    """
    tally, found = Tally(), dict[str, Preview]()
    for item in _checked(importer.read(stream), target):
        if isinstance(item, Measured):
            found.setdefault(target.name_of(item), Preview(item.slot, item.slot)).add(item)
            tally.new += 1
        elif isinstance(item, LeftOut):
            tally.left_out[item.why] += 1
        elif strict:
            raise Stopped(str(item))
        else:
            tally.malformed += 1
            listener.malformed(item)
    refuse_taken(target, found)
    tally.series |= found.keys()
    return found, tally


def _checked(items: Iterable[Item], target: Target) -> Iterator[Item]:
    """*items*; what no run can be made of, as what it is."""
    for item in items:
        yield (wrong(target, item) or item) if isinstance(item, Measured) else item
