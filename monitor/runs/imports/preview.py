"""Dry run of an import: report what it would create."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from monitor.runs.imports.formats.base import ImportedRun, Importer, SkippedRecord
from monitor.runs.imports.run import ImportListener, ImportStopped, ImportTally, check_run
from monitor.runs.imports.targets import Target, refuse_name_conflicts


@dataclass
class SeriesPreview:
    """The runs that an import would store in one series.

    Attributes:
        first, last: the slots of the first and the last run.
        units: the unit of each metric, by name.
        outcomes: the number of runs by outcome.
    """

    first: datetime
    last: datetime
    units: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, run: ImportedRun) -> None:
        self.first, self.last = min(self.first, run.slot), max(self.last, run.slot)
        self.outcomes[run.outcome] += 1
        self.units.update({f"stage.{stage.name}.seconds": "seconds" for stage in run.stages})
        self.units.update({metric.name: metric.unit for metric in run.metrics})


def preview(
    importer: Importer, stream: BinaryIO, target: Target, listener: ImportListener, *, strict: bool = False
) -> tuple[dict[str, SeriesPreview], ImportTally]:
    """Return what an import of *stream* would create, by series name, and its counts; store nothing.

    All runs count as new. *strict* stops at the first refused record, which *listener* otherwise receives.

    Raises:
        Unreadable, ImportRefused, ImportStopped: as ``import_history``.
    """
    tally, previews = ImportTally(), dict[str, SeriesPreview]()
    for item in importer.read(stream):
        checked = (check_run(target, item) or item) if isinstance(item, ImportedRun) else item
        if isinstance(checked, ImportedRun):
            name = target.name_of(checked)
            previews.setdefault(name, SeriesPreview(checked.slot, checked.slot)).add(checked)
            tally.new += 1
        elif isinstance(checked, SkippedRecord):
            tally.skipped[checked.reason] += 1
        elif strict:
            raise ImportStopped(str(checked))
        else:
            tally.malformed += 1
            listener.malformed(checked)
    refuse_name_conflicts(target, previews)
    tally.series |= previews.keys()
    return previews, tally
