"""What must be in the depot when all runs have passed, each once, whatever happened to them on the way."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from django.db.models import Count

from monitor.ledger import transitions
from monitor.models import RawReport, Run, Sample, Segment, Transition, Usage
from monitor.models.run import State

VALUES = 5  # of each run that does nothing: two stages, three totals


def check_that_each_report_is_there_once(runs: int) -> None:
    """Itself, its values, its account."""
    reported = {kept.parsed().run for kept in RawReport.objects.iterator()}
    assert reported == set(Run.objects.values_list("pk", flat=True))
    of_series = Sample.objects.order_by().values("metric__segment__series").annotate(values=Count("*"))
    assert Counter(one["values"] for one in of_series) == {VALUES: runs}
    assert (RawReport.objects.count(), Usage.objects.count(), Segment.objects.count()) == (runs, runs, runs)


def check_that_each_went_a_way_that_there_is(runs: int) -> None:
    """From where it was to where it might go, from the beginning to one end."""
    steps = Transition.objects.order_by("run", "pk").values_list("run", "source", "target")
    ways = {run: [step[1:] for step in of] for run, of in groupby(steps, key=lambda step: step[0])}
    assert len(ways) == runs
    for run, way in ways.items():
        sources, targets = zip(*way, strict=True)
        assert sources == (State.EXPECTED, *targets[:-1]), f"{run}: {way}"
        assert all(target in transitions.ALLOWED[source] for source, target in way), f"{run}: {way}"
        assert targets[-1] == State.PASSED, f"{run}: {way}"
