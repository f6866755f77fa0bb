"""Checks of the depot when all runs have passed: each once, whatever was killed on the way."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from django.db.models import Count

from monitor.models import RawReport, Run, Sample, Segment, Transition, Usage
from monitor.models.run import State
from monitor.runs.ledger import transitions

VALUES = 5  # per run: two stages, three totals


def check_reports(runs: int) -> None:
    """Check that each report is stored once, with its values and its usage."""
    reported = {raw.parsed().run for raw in RawReport.objects.iterator()}
    assert reported == set(Run.objects.values_list("pk", flat=True))
    of_series = Sample.objects.order_by().values("metric__segment__series").annotate(values=Count("*"))
    assert Counter(one["values"] for one in of_series) == {VALUES: runs}
    assert (RawReport.objects.count(), Usage.objects.count(), Segment.objects.count()) == (runs, runs, runs)


def check_transitions(runs: int) -> None:
    """Check that the transitions of each run are allowed and lead from ``expected`` to ``passed``."""
    steps = Transition.objects.order_by("run", "pk").values_list("run", "source", "target")
    paths = {run: [step[1:] for step in of] for run, of in groupby(steps, key=lambda step: step[0])}
    assert len(paths) == runs
    for run, path in paths.items():
        sources, targets = zip(*path, strict=True)
        assert sources == (State.EXPECTED, *targets[:-1]), f"{run}: {path}"
        assert all(target in transitions.ALLOWED[source] for source, target in path), f"{run}: {path}"
        assert targets[-1] == State.PASSED, f"{run}: {path}"
