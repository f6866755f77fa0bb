"""What differs between two runs of a series, by their reports: configuration and environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.depot.series.segment_diff import segment_changes
from monitor.models.segment import SegmentIdentity

if TYPE_CHECKING:
    from reporters.report import Report

NOT_REPORTED = "not reported"
_DIGEST_CHARACTERS = 12


@dataclass(frozen=True)
class RunDifference:
    """One difference; *kind* is one of environment, probe, parameters and resources."""

    kind: str
    what: str
    before: str
    after: str


def run_differences(before: Report, after: Report) -> list[RunDifference]:
    """Return what differs in *after* from *before*, the configuration first. Pure."""
    changes = segment_changes(_identity(before), _identity(after))
    configured = [RunDifference(str(each.kind), each.what, each.before, each.after) for each in changes]
    return [*configured, *_file(before, after), *_environment(before, after)]


def _identity(report: Report) -> SegmentIdentity:
    return SegmentIdentity(report.probe.name, report.probe.version, report.parameters, report.bindings)


def _file(before: Report, after: Report) -> Iterator[RunDifference]:
    """Yield a changed file of a probe whose version is the same."""
    old, new = before.probe, after.probe
    if (old.name, old.version) == (new.name, new.version) and old.sha256 != new.sha256:
        texts = (digest[:_DIGEST_CHARACTERS] or NOT_REPORTED for digest in (old.sha256, new.sha256))
        yield RunDifference("probe", f"SHA-256 of probe {new.name}", *texts)


def _environment(before: Report, after: Report) -> Iterator[RunDifference]:
    for what, old, new in (
        ("reporter", before.reporter, after.reporter),
        ("host", before.environment.hostname, after.environment.hostname),
        ("kernel", before.environment.kernel, after.environment.kernel),
        ("python", before.environment.python, after.environment.python),
        *_tools(before, after),
        ("clock", _clock(before), _clock(after)),
    ):
        if old != new:
            yield RunDifference("environment", what, old or NOT_REPORTED, new or NOT_REPORTED)


def _tools(before: Report, after: Report) -> Iterator[tuple[str, str, str]]:
    old, new = before.environment.tools, after.environment.tools
    for tool in sorted({*old, *new}):
        yield tool, old.get(tool, ""), new.get(tool, "")


def _clock(report: Report) -> str:
    return "synchronised" if report.clock.synchronised else "not synchronised"
