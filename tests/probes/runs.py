"""Run one probe over directories of this host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reporters import run as reporter
from reporters.config import Assignment, ResourceConfig
from reporters.report import Report

LIMIT_SECONDS = 300.0  # for a busy machine; a run takes a second or two on an idle one


def run_locally(
    probe: str,
    directory: Path,
    parameters: Mapping[str, Any],
    *roles: str,
    resource: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Report:
    """Run *probe* with one resource per role (default: "target"). A resource is a directory of this host.

    Its PATH starts with the directory ``at-<role>/bin``; see ``install``. *resource* changes fields of all
    resources, *changes* fields of the assignment.
    """
    resources = {}
    for role in roles or ("target",):
        site = f"at-{role}"
        for part in ("bin", "scratch"):
            (directory / site / part).mkdir(parents=True, exist_ok=True)
        shell = {"kind": "local", "path": f"{directory / site / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
        default = ResourceConfig(site, site, str(directory / site / "scratch"), shell=shell)
        resources[site] = replace(default, **(resource or {}))
    assignment = Assignment(
        series=f"{probe}-test",
        slot=datetime(2026, 3, 1, tzinfo=UTC),
        reporter="home",
        probe=probe,
        bindings={role: [f"at-{role}"] for role in roles or ("target",)},
        resources=resources,
        parameters=parameters,
        limit_seconds=LIMIT_SECONDS,
    )
    return reporter.run(replace(assignment, **changes))


def install(directory: Path, program: str, script: str, role: str = "target") -> None:
    """Put a shell script before the real *program* on the PATH of a role's resource."""
    file = directory / f"at-{role}" / "bin" / program
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def metrics(report: Report) -> dict[str, float]:
    return {metric.name: metric.value for metric in report.metrics}


def units(report: Report) -> dict[str, str]:
    return {metric.name: metric.unit for metric in report.metrics}


def logged(report: Report, level: str) -> list[str]:
    return [line.text for line in report.log if line.level == level]
