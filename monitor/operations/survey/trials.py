"""Runs of probes with small parameters, by the same code as scheduled runs."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import probes
from reporters.config import Assignment, ResourceConfig
from reporters.report import Report
from reporters.run import run

_LIMIT_SECONDS = 120.0
_CONCURRENT = 4
Pair = tuple[str, str]


def trial(
    probe: str,
    bindings: Mapping[str, Sequence[str]],
    resources: Mapping[str, ResourceConfig],
    limit_seconds: float = _LIMIT_SECONDS,
) -> Report:
    """Run *probe* once with its trial parameters; if the run fails, the report has the stage and the reason.

    *bindings* has the names of *resources* for each role of the probe.
    """
    bound = {name for names in bindings.values() for name in names}
    hosts = hashlib.sha256(repr(sorted(bound)).encode()).hexdigest()[:8]
    return run(
        Assignment(
            # The next trial with the same hosts removes what a killed one left there; others run beside it.
            series=f"init-{probe}-{hosts}",
            slot=datetime.now(UTC),
            reporter="init",
            probe=probe,
            bindings=bindings,
            resources={name: resources[name] for name in sorted(bound)},
            parameters=probes.load(probe).trial,
            limit_seconds=limit_seconds,
        )
    )


def waited_in_a_queue(report: Report) -> bool:
    """Return whether the run of *report* reached its time limit while its job waited to start."""
    return (
        report.outcome == "timed_out" and report.failure is not None and report.failure.stage == "queue_wait"
    )


def copy_failures(names: Sequence[str], resources: Mapping[str, ResourceConfig]) -> dict[Pair, str]:
    """Copy a small file both ways between all pairs of *names*; return the reasons of failures by pair."""
    pairs = list(itertools.combinations(names, 2))
    with ThreadPoolExecutor(_CONCURRENT) as pool:
        reports = pool.map(lambda pair: trial("circle", {"ring": pair}, resources), pairs)
        return {
            pair: report.reason
            for pair, report in zip(pairs, reports, strict=True)
            if report.outcome != "passed"
        }
