"""Two imports of the same times: what each is told of runs that the other has stored meanwhile."""

from __future__ import annotations

import io

import pytest

from monitor.models import Run
from monitor.runs.imports import formats
from monitor.runs.imports.formats.base import MalformedRecord
from monitor.runs.imports.run import ImportListener, ImportTally, import_history
from monitor.runs.imports.targets import Target

FUTURE = "2150-01-01T00:00:00Z,3\n"  # refused after the import has looked which runs are stored


def imported(
    file: str, value: int, *, and_meanwhile: ImportTally | None = None, last: str = ""
) -> ImportTally:
    data = f"time,value\n2026-03-01T00:00:00Z,{value}\n{last}".encode()

    def refused(_: MalformedRecord) -> None:
        vars(and_meanwhile).update(vars(imported("other", 2)))

    listener = ImportListener(refused, lambda _: None)
    importer = formats.create_importer("csv", {"units": "s"})
    return import_history(importer, io.BytesIO(data), Target("csv", "old"), file, listener)


@pytest.mark.parametrize(("value", "differing"), [(1, 1), (2, 0)])
def test_a_run_that_another_import_stored_with_another_value_counts_as_differing(
    db: None, value: int, differing: int
) -> None:
    other = ImportTally()
    tally = imported("first", value, and_meanwhile=other, last=FUTURE)
    assert (other.new, other.known) == (1, 0)
    assert (tally.new, tally.known, tally.differing) == (0, 1, differing)
    assert Run.objects.count() == 1
